"""The file that is shipped with the agent: it drains a real HAProxy, stops a unit, approves, and
puts both back, against a real server."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import preloaded
from tests.end_to_end.agents import PATIENCE, an_agent, endpoint_of, schedule, status_of, until
from tests.end_to_end.server_process import Server, environment, serving
from tests.packages import need

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agent" / "agent.toml"
CONFIG = """\
global
  stats socket {socket} level admin
defaults
  mode tcp
  timeout connect 5s
  timeout client 5m
  timeout server 5m
frontend in
  bind fd@{listener}
  default_backend web
backend web
  server app 127.0.0.1:{port}
"""
# As systemctl is documented: `show` tells a property, `stop` and `start` return when it is so.
SYSTEMCTL = """\
#!/bin/sh
shift  # --no-ask-password
case "$1 $2" in
  "show --property=ActiveState") cat {state} ;;
  "show --property=LoadState") echo loaded ;;
  "stop --") echo inactive > {state} ;;
  "start --") echo active > {state} ;;
  *) echo "unknown: $*" >&2; exit 1 ;;
esac
echo "$*" >> {calls}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A VM with HAProxy in front of an application."""

    folder: Path
    front: int
    """The port that visitors use."""

    @property
    def admin(self) -> Path:
        return self.folder / "admin.sock"

    @property
    def text(self) -> str:
        """The example, with the places that are this test's own."""
        text = EXAMPLE.read_text(encoding="utf-8")
        for shipped, ours in {
            "/run/haproxy/admin.sock": str(self.admin),
            "/var/lib/forewarned-agent": str(self.folder / "agent-state"),
            "127.0.0.1:8172": "127.0.0.1:0",
        }.items():
            assert shipped in text
            text = text.replace(shipped, ours)
        return text

    @property
    def calls(self) -> list[str]:
        """What was done to the unit; asking is left out."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not line.startswith("show")]

    def server_state(self) -> str:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(self.admin))
            asking.sendall(b"show stat -1 4 -1\n")
            table = asking.makefile().read().lstrip("# ").splitlines()
        names = table[0].split(",")
        rows = [dict(zip(names, line.split(","), strict=False)) for line in table[1:] if line]
        return next(row["status"] for row in rows if row["svname"] == "app")

    def visit(self) -> socket.socket:
        """A session that lasts until it is closed."""
        visitor = socket.create_connection(("127.0.0.1", self.front), timeout=PATIENCE)
        visitor.sendall(b"hello")
        assert visitor.recv(5) == b"hello"
        return visitor


@contextmanager
def an_application() -> Iterator[int]:
    """Says back whatever it is told. Yields its port."""

    def talk(visitor: socket.socket) -> None:
        with visitor:
            while told := visitor.recv(100):
                visitor.sendall(told)

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                visitor, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(visitor,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def haproxy() -> str:
    return need("haproxy")


@pytest.fixture
def site(haproxy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    programs = tmp_path / "bin"
    programs.mkdir()
    systemctl = programs / "systemctl"
    state = tmp_path / "state-of-app"
    state.write_text("active\n")
    systemctl.write_text(SYSTEMCTL.format(state=state, calls=tmp_path / "calls"))
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with an_application() as port, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.set_inheritable(True)
        found = Site(folder=tmp_path, front=listener.getsockname()[1])
        config = tmp_path / "haproxy.cfg"
        config.write_text(CONFIG.format(socket=found.admin, listener=listener.fileno(), port=port))
        running = subprocess.Popen(
            [haproxy, "-db", "-f", str(config)], pass_fds=[listener.fileno()]
        )
        try:
            until(found.admin.exists, "HAProxy")
            yield found
        finally:
            running.kill()
            running.wait(PATIENCE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "fleet.toml").write_text('[[vms]]\nname = "web"\n')
    with serving(folder, "--fleet", "fleet.toml") as running:
        yield running


def forewarned(*words: str) -> "subprocess.CompletedProcess[str]":
    return preloaded.run(*words, environment=environment())


def test_the_shipped_file_drains_stops_approves_and_puts_both_back(
    site: Site, server: Server, tmp_path: Path
) -> None:
    """I30."""
    with an_agent(tmp_path / "agent", site.text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        visitor = site.visit()
        event_id = schedule(server, "Reboot", "web")
        until(lambda: site.server_state() == "DRAIN", "HAProxy to drain")

        # A client is still being served: nothing is stopped, and nothing approved.
        explained = forewarned("agent", "explain", "--agent", agent.listens)
        assert explained.returncode == 0, explained.stderr
        assert "rule         all else\n" in explained.stdout
        assert "step         drain (prepare), for 4m at most\n" in explained.stdout
        assert "1 of web/app" in explained.stdout.partition("waits for")[2].partition("\n")[0]
        assert "time left    1" in explained.stdout
        assert site.calls == []
        assert status_of(server, event_id) == "Scheduled"

        visitor.close()
        agent.until(event_id, "started")
        assert site.calls == ["stop -- app.service"]
        assert site.server_state() == "DRAIN"
        assert server.call("GET", f"/v1/events/{event_id}")["start_cause"] == "approved"

        server.call("POST", f"/v1/events/{event_id}/complete")
        agent.until(event_id, "finished")
        assert site.calls == ["stop -- app.service", "start -- app.service"]
        assert not site.server_state().startswith("DRAIN")
        site.visit().close()
        assert "Reboot of web is over" in agent.log()


def test_the_shipped_file_is_checked_and_rehearsed(site: Site, server: Server) -> None:
    file = site.folder / "agent.toml"
    file.write_text(
        site.text.replace("[agent]\n", f'[agent]\nendpoint = "{endpoint_of(server, "web")}"\n')
    )

    checked = forewarned("agent", "check", str(file))
    rehearsed = forewarned("agent", "rehearse", "reboot", "--live", "--config", str(file))

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert rehearsed.returncode == 0, rehearsed.stdout + rehearsed.stderr
    lines = [line.split() for line in rehearsed.stdout.splitlines()]
    table = [line for line in lines if line[:1] in [["prepare"], ["undo"], ["recover"]]]
    assert [line[:3] for line in table] == [
        ["prepare", "drain", "done"],
        ["prepare", "stop-app", "done"],
        ["undo", "stop-app", "done"],
        ["undo", "drain", "done"],
        ["recover", "tell", "done"],
    ]
    fits = {line[0]: line for line in lines if line and line[-1] in {"yes", "no"}}
    assert set(fits) == {"Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"}
    assert rehearsed.stdout.endswith("This VM would be ready in time for every type.\n")
    assert site.calls == ["stop -- app.service", "start -- app.service"]
    assert not site.server_state().startswith("DRAIN")
    # Nothing was scheduled, and so nothing approved.
    assert server.call("GET", "/v1/events")["events"] == []


def test_what_a_killed_agent_has_drained_is_put_back_by_the_next(
    site: Site, server: Server, tmp_path: Path
) -> None:
    """I30: kill -9 while it waits for sessions, whose end it never sees."""
    folder = tmp_path / "agent"
    with an_agent(folder, site.text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        visitor = site.visit()
        event_id = schedule(server, "Reboot", "web")
        until(lambda: site.server_state() == "DRAIN", "HAProxy to drain")
        agent.kill()

    with an_agent(folder, site.text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.event(event_id) is not None, "the journal to be read")
        # It may or may not have done its work, and is not run again: so nothing is approved.
        assert site.server_state() == "DRAIN"
        assert status_of(server, event_id) == "Scheduled"

        server.call("POST", f"/v1/events/{event_id}/cancel")
        until(lambda: site.server_state() != "DRAIN", "HAProxy to serve again")

    assert site.server_state() == "no check"
    visitor.close()
