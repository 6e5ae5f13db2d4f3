"""The agent, as its own process, against the real server in another: an event's whole life."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.agents import (
    PATIENCE,
    AgentFile,
    Notebook,
    an_agent,
    endpoint_of,
    schedule,
    start,
    status_of,
    until,
)
from tests.end_to_end.server_process import Server, serving

FLEET = """\
[[vms]]
name = "web"

[[vms]]
name = "spot"
priority = "Spot"

[[vms]]
name = "last"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "fleet.toml").write_text(FLEET)
    with serving(folder, "--fleet", "fleet.toml") as running:
        yield running


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(path=tmp_path / "runs")


def is_well(notebook: Notebook, **more: object) -> AgentFile:
    """Drain and stop, approve, start and undrain, check."""
    fields: dict[str, object] = {
        "hooks": {"drain": "", "stop": "", "check": ""},
        "prepare": ["drain", "stop"],
        "recover": ["check"],
    }
    return AgentFile(notebook=notebook, **(fields | more))  # type: ignore[arg-type]  # as above


PREPARED = ["prepare drain", "prepare stop"]
PUT_BACK = ["undo stop", "undo drain", "recover check"]


@pytest.mark.parametrize(
    ("type_", "vm"),
    [("Freeze", "web"), ("Reboot", "web"), ("Redeploy", "web"), ("Preempt", "spot")],
)
def test_it_prepares_approves_and_puts_back_for_every_type_of_event(
    server: Server, tmp_path: Path, notebook: Notebook, type_: str, vm: str
) -> None:
    """I30."""
    text = is_well(notebook).text(tmp_path / "state")
    with an_agent(tmp_path, text, endpoint_of(server, vm)) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        assert agent.get("/readyz")[0] == 200

        event_id = schedule(server, type_, vm)
        seen = agent.until(event_id, "started")

        assert notebook.runs == PREPARED
        assert seen["approved"]
        assert seen["rule"] == "every event"
        assert seen["waits_for"] == "the event to be over"
        assert agent.get("/readyz")[0] == 503
        assert server.call("GET", f"/v1/events/{event_id}")["start_cause"] == "approved"

        server.call("POST", f"/v1/events/{event_id}/complete")
        agent.until(event_id, "finished")

        assert notebook.runs == PREPARED + PUT_BACK
        assert agent.get("/readyz") == (200, "ok\n")
        assert (
            'forewarned_agent_hooks_total{step="stop",phase="undo",verdict="done"} 1'
            in (agent.get("/metrics")[1])
        )
        assert agent.stop() == 0
        assert "Traceback" not in agent.log()


def test_it_lets_a_vm_be_deleted_once_it_is_prepared(
    server: Server, tmp_path: Path, notebook: Notebook
) -> None:
    text = is_well(notebook).text(tmp_path / "state")
    with an_agent(tmp_path, text, endpoint_of(server, "last")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")

        event_id = schedule(server, "Terminate", "last")
        until(lambda: status_of(server, event_id) != "Scheduled", "the approval")

        assert notebook.runs == PREPARED


def test_a_canceled_event_is_undone(server: Server, tmp_path: Path, notebook: Notebook) -> None:
    """I30: whatever was prepared is put back, even if nothing came of the event."""
    text = is_well(notebook, approve="never").text(tmp_path / "state")
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        event_id = schedule(server, "Reboot", "web")
        seen = agent.until(event_id, "ready")
        assert seen["waits_for"] == "NotBefore: rule 'every event' never approves"

        server.call("POST", f"/v1/events/{event_id}/cancel", {"reason": "not today"})
        agent.until(event_id, "finished")

        assert notebook.runs == PREPARED + PUT_BACK


@pytest.mark.parametrize(
    ("then", "more", "approves", "verdict"),
    [
        ("exit 3", {}, False, "failed"),
        ("exit 3", {"required": False}, True, "failed"),
        ("exit 9", {"veto_exit_code": 9, "required": False}, False, "vetoed"),
        ("exec sleep 60", {"timeout": "500ms"}, False, "timed_out"),
    ],
    ids=["required fails", "optional fails", "veto", "too slow"],
)
def test_what_comes_of_a_hook_decides_on_the_approval(
    server: Server,
    tmp_path: Path,
    notebook: Notebook,
    *,
    then: str,
    more: dict[str, object],
    approves: bool,
    verdict: str,
) -> None:
    """I30: never after a failed hook, unless the policy says so."""
    file = is_well(notebook, hooks={"drain": then, "stop": "", "check": ""}, more={"drain": more})
    with an_agent(tmp_path, file.text(tmp_path / "state"), endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        event_id = schedule(server, "Reboot", "web")
        seen = agent.until(event_id, "started" if approves else "not prepared")

        assert seen["steps"][0]["state"] == verdict
        assert notebook.runs == PREPARED
        if not approves:
            assert "'drain'" in seen["not_approved_because"]
            assert status_of(server, event_id) == "Scheduled"
            server.call("POST", f"/v1/events/{event_id}/cancel", {"reason": "enough"})
        else:
            server.call("POST", f"/v1/events/{event_id}/complete")
        agent.until(event_id, "finished")
        assert notebook.runs == PREPARED + PUT_BACK


def test_what_does_not_fit_before_not_before_is_left_out_and_cut_short(
    server: Server, tmp_path: Path, notebook: Notebook
) -> None:
    """The notice is 4 s: a long step that may be left out is, a step that may not is ended."""
    file = is_well(
        notebook,
        hooks={"drain": "exec sleep 60", "stop": "", "check": ""},
        more={"stop": {"cut": 1, "expected": "10s"}, "drain": {"expected": "1s"}},
    )
    with an_agent(tmp_path, file.text(tmp_path / "state"), endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        event_id = schedule(server, "Reboot", "web", notice="4s", short_notice=True)
        seen = agent.until(event_id, "not prepared")

        states = {(s["phase"], s["step"]): s["state"] for s in seen["steps"]}
        assert states["prepare", "drain"] == "timed_out"
        assert states["prepare", "stop"] == "skipped"
        assert notebook.runs == ["prepare drain"]
        server.call("POST", f"/v1/events/{event_id}/cancel", {"reason": "enough"})
        agent.until(event_id, "finished")
        assert notebook.runs == ["prepare drain", "undo drain", "recover check"]


def test_two_events_of_one_vm_are_put_back_from_when_both_are_over(
    server: Server, tmp_path: Path, notebook: Notebook
) -> None:
    text = is_well(notebook, approve="never").text(tmp_path / "state")
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        one, other = schedule(server, "Freeze", "web"), schedule(server, "Reboot", "web")
        agent.until(one, "ready")
        agent.until(other, "ready")

        server.call("POST", f"/v1/events/{one}/cancel", {"reason": "enough"})
        held = agent.until(one, "restoring")
        until(lambda: other in agent.event(one)["waits_for"], "it to be held back")
        assert not [run for run in notebook.runs if run.startswith("undo")], held

        server.call("POST", f"/v1/events/{other}/cancel", {"reason": "enough"})
        agent.until(one, "finished")
        agent.until(other, "finished")
        assert notebook.counts == dict.fromkeys(PREPARED + PUT_BACK, 2)


def test_what_two_hooks_change_stays_changed_until_neither_event_needs_it(
    server: Server, tmp_path: Path
) -> None:
    """I30: the second finds the file there, and would have nothing left when the first is over."""
    flag = tmp_path / "draining"
    hook = f'kind = "flag"\npath = "{flag}"\n'
    rule = 'approve = "never"\n'
    text = (
        f'[agent]\nstate = "{tmp_path / "state"}"\nlisten = "127.0.0.1:0"\npoll = "100ms"\n'
        f"[hooks.long]\n{hook}[hooks.short]\n{hook}"
        f'[[rules]]\nname = "pause"\ntype = ["Freeze"]\nprepare = ["short"]\n{rule}'
        f'[[rules]]\nname = "all else"\nprepare = ["long"]\n{rule}'
    )
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        one = schedule(server, "Reboot", "web")
        agent.until(one, "ready")
        other = schedule(server, "Freeze", "web")
        agent.until(other, "ready")

        server.call("POST", f"/v1/events/{one}/cancel", {"reason": "enough"})
        until(lambda: other in agent.event(one)["waits_for"], "it to be held back")
        assert flag.exists()

        server.call("POST", f"/v1/events/{other}/cancel", {"reason": "enough"})
        agent.until(one, "finished")
        agent.until(other, "finished")
        assert not flag.exists()


def test_no_secret_of_a_hook_is_logged_or_shown(server: Server, tmp_path: Path) -> None:
    """S16: however much is logged."""
    token = tmp_path / "token"
    token.write_text("s3cret-token")
    secrets = ("s3cret-password", "s3cret-key", token.read_text())
    asked = f"{server.metadata}/?key={secrets[1]}"
    text = (
        f'[agent]\nstate = "{tmp_path / "state"}"\nlisten = "127.0.0.1:0"\npoll = "100ms"\n'
        f'log_level = "debug"\n[hooks.call]\nkind = "http"\nbearer_file = "{token}"\n'
        f'url = "http://me:{secrets[0]}@{asked}"\n'
        '[[rules]]\nname = "any"\nprepare = ["call"]\n'
    )
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        event = schedule(server, "Reboot", "web")
        shown = str(agent.until(event, "not prepared"))
        server.call("POST", f"/v1/events/{event}/cancel", {"reason": "enough"})
        agent.until(event, "finished")

    said = (tmp_path / "agent.log").read_text()
    assert "answered" in shown
    assert [secret for secret in secrets if secret in said + shown] == []
    assert "send_request" not in said


def test_two_agents_never_share_a_state_directory(
    server: Server, tmp_path: Path, notebook: Notebook
) -> None:
    text = is_well(notebook).text(tmp_path / "state")
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        second = start(tmp_path / "second", text, endpoint_of(server, "web"))

        assert second.wait(PATIENCE) != 0
        said = (tmp_path / "second" / "agent.log").read_text()
        assert f"another agent (process {agent.running.pid})" in said
        assert "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_in_the_middle_of_a_hook_it_stops_and_never_runs_it_again(
    server: Server, tmp_path: Path, notebook: Notebook, number: int
) -> None:
    """I30. The hook's own processes go with it."""
    file = is_well(
        notebook,
        hooks={"drain": "echo $$ > pid; exec sleep 60", "stop": "", "check": ""},
        more={"drain": {"directory": str(tmp_path)}},
    )
    text = file.text(tmp_path / "state")
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        event_id = schedule(server, "Reboot", "web")
        pid = tmp_path / "pid"
        until(lambda: pid.exists() and pid.read_text().strip(), "the hook to run")
        hook = int(pid.read_text())

        agent.running.send_signal(number)
        assert agent.running.wait(PATIENCE) == 0

        assert "Traceback" not in agent.log()
        until(lambda: not _is_running(hook), "the hook to be ended")
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        seen = agent.until(event_id, "not prepared")
        assert seen["steps"][0]["state"] == "interrupted"
        assert notebook.runs == PREPARED
        server.call("POST", f"/v1/events/{event_id}/cancel", {"reason": "enough"})
        agent.until(event_id, "finished")
        assert notebook.runs == PREPARED + PUT_BACK


def _is_running(pid: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return found.stdout.strip() not in {b"", b"Z", b"Zs"}


def test_it_waits_for_a_server_that_comes_late_and_says_why(
    tmp_path: Path, notebook: Notebook
) -> None:
    text = is_well(notebook).text(tmp_path / "state")
    with an_agent(tmp_path, text, "http://127.0.0.1:9/vm/web") as agent:
        until(lambda: "can't be reached" in agent.get("/healthz")[1], "the reason")
        assert agent.get("/healthz")[0] == agent.get("/readyz")[0] == 503
        assert agent.status()["resource"] == ""
