"""I30: an agent killed at every step of a plan, and started again each time, runs no hook twice.

It is not stopped gently: it dies by SIGKILL, just after it has written a fact, or with all that
follows a fact done and the next one not written.
"""

from collections.abc import Iterator
from functools import partial
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
from tests.preloaded import Running

FINISHED = b'"Finished"'
MOST_LIVES = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "fleet.toml").write_text('[[vms]]\nname = "web"\n')
    with serving(folder, "--fleet", "fleet.toml") as running:
        # A VM that has never read is not waited for: an event would start at once.
        running.get("/vm/web/metadata/scheduledevents?api-version=2020-07-01")
        yield running


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(path=tmp_path / "runs")


def a_file(notebook: Notebook, folder: Path, *, approve: str = "always") -> str:
    return AgentFile(
        notebook=notebook,
        hooks={"drain": "", "stop": "", "check": ""},
        prepare=["drain", "stop"],
        recover=["check"],
        approve=approve,
    ).text(folder / "state")


class Lives:
    """One agent after another on the same state directory."""

    def __init__(self, folder: Path, text: str, endpoint: str, *, kind: str) -> None:
        self._folder = folder
        self._text = text
        self._endpoint = endpoint
        self._kind = kind
        self.deaths = 0

    @property
    def journal(self) -> bytes:
        file = self._folder / "state" / "journal"
        return file.read_bytes() if file.exists() else b""

    def begin(self, boot: str = "one") -> Running:
        return start(self._folder, self._text, self._endpoint, mortal=(self._kind, boot))

    def died(self, life: Running) -> bool:
        """Wait for its end; False if it has nothing more to write."""
        if life.poll() is None:
            return False
        assert life.returncode == -9, (self._folder / "agent.log").read_text()
        self.deaths += 1
        return True


@pytest.mark.parametrize("kind", ["after", pytest.param("before", marks=pytest.mark.thorough)])
def test_killed_at_every_step_it_runs_no_hook_twice_and_puts_everything_back(
    server: Server, tmp_path: Path, notebook: Notebook, kind: str
) -> None:
    """I30."""
    text = a_file(notebook, tmp_path)
    lives = Lives(tmp_path, text, endpoint_of(server, "web"), kind=kind)
    event_id = schedule(server, "Reboot", "web")

    life = lives.begin()
    while FINISHED not in lives.journal:
        until(partial(_has_moved, server, event_id, life, lives), "the agent to move on")
        if life.poll() is not None:
            assert lives.died(life)
            assert lives.deaths < MOST_LIVES
            life = lives.begin()
    life.kill()
    life.wait(PATIENCE)

    counts = notebook.counts
    assert set(counts.values()) <= {1}, counts
    # Whatever was begun counts as prepared, and is put back; what dies before it has run is not
    # run again, and here every run begins right after such a death, or ends in one.
    assert [run for run in notebook.runs if run.startswith("prepare")] == (
        ["prepare drain", "prepare stop"] if kind == "before" else []
    )
    assert lives.deaths >= 10
    assert lives.journal.count(b'"Began"') == 5


def _has_moved(server: Server, event_id: str, life: Running, lives: Lives) -> bool:
    """Carry the event out once it has started, as a host would; then see what the agent does."""
    if status_of(server, event_id) == "Started" and b'"is_started":true' in lives.journal:
        server.call("POST", f"/v1/events/{event_id}/complete")
    return life.poll() is not None or FINISHED in lives.journal


@pytest.mark.parametrize("step", ["prepare drain", "prepare stop", "undo stop", "undo drain"])
def test_killed_by_a_hook_it_goes_on_after_it(
    server: Server, tmp_path: Path, notebook: Notebook, step: str
) -> None:
    """I30: the hook has done its work, and only the agent does not know."""
    phase, name = step.split()
    kills = f'[ "$FOREWARNED_PHASE" = {phase} ] && kill -9 $PPID; true'
    file = AgentFile(
        notebook=notebook,
        hooks={"drain": "", "stop": "", "check": ""},
        more={name: {which: notebook.script(name, kills) for which in ("argv", "undo_argv")}},
        prepare=["drain", "stop"],
        recover=["check"],
        approve="always",
    )
    text = file.text(tmp_path / "state")
    event_id = schedule(server, "Reboot", "web")
    first = start(tmp_path, text, endpoint_of(server, "web"))
    if phase == "undo":
        until(lambda: status_of(server, event_id) == "Started", "the approval")
        server.call("POST", f"/v1/events/{event_id}/complete")
    assert first.wait(PATIENCE) == -9

    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        if phase == "prepare":
            agent.until(event_id, "started")
            server.call("POST", f"/v1/events/{event_id}/complete")
        seen = agent.until(event_id, "finished")

    states = {(s["phase"], s["step"]): s["state"] for s in seen["steps"]}
    assert states.pop((phase, name)) == "interrupted"
    assert set(states.values()) == {"done"}
    every = ["prepare drain", "prepare stop", "undo stop", "undo drain", "recover check"]
    assert notebook.runs == every


def test_a_required_hook_that_was_cut_short_keeps_it_from_approving(
    server: Server, tmp_path: Path, notebook: Notebook
) -> None:
    """I30: it may or may not have done its work, so nothing may rely on it."""
    text = a_file(notebook, tmp_path, approve="when-ready")
    lives = Lives(tmp_path, text, endpoint_of(server, "web"), kind="before")
    event_id = schedule(server, "Reboot", "web")
    for _ in range(2):
        # The first plans; the second runs the drain, and dies before it can say so.
        life = lives.begin()
        life.wait(PATIENCE)
        assert lives.died(life)

    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        seen = agent.until(event_id, "not prepared")
        assert seen["not_approved_because"] == "step 'drain' is required and was interrupted"
        server.call("POST", f"/v1/events/{event_id}/cancel", {"reason": "enough"})
        agent.until(event_id, "finished")

    assert notebook.counts["prepare drain"] == notebook.counts["undo drain"] == 1


def test_after_the_reboot_that_it_prepared_for_it_puts_back_and_says_that_it_came_back(
    server: Server, tmp_path: Path, notebook: Notebook
) -> None:
    """I30: the VM goes down with the agent, and comes up with another boot id."""
    text = a_file(notebook, tmp_path, approve="when-ready")
    event_id = schedule(server, "Reboot", "web")
    before = start(tmp_path, text, endpoint_of(server, "web"), mortal=("never", "one"))
    journal = tmp_path / "state" / "journal"
    until(lambda: journal.exists() and b'"is_started":true' in journal.read_bytes(), "the start")
    before.kill()
    before.wait(PATIENCE)

    server.call("POST", f"/v1/events/{event_id}/complete")
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        seen = agent.until(event_id, "finished")

    assert seen["came_back"]
    assert notebook.runs == [
        "prepare drain",
        "prepare stop",
        "undo stop",
        "undo drain",
        "recover check",
    ]
