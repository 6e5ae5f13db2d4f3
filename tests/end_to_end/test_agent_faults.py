"""The agent beside a service that fails: silence and errors are no sign that an event is over."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.agents import (
    Agent,
    AgentFile,
    Notebook,
    an_agent,
    endpoint_of,
    schedule,
    until,
)
from tests.end_to_end.server_process import Server, ready, serving, start

FLEET = '[[vms]]\nname = "web"\n'
PREPARED = ["prepare drain"]
PUT_BACK = ["undo drain"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "fleet.toml").write_text(FLEET)
    with serving(folder, "--fleet", "fleet.toml") as running:
        yield running


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(path=tmp_path / "runs")


def a_file(notebook: Notebook, folder: Path, *, approve: str) -> str:
    return AgentFile(
        notebook=notebook, hooks={"drain": ""}, prepare=["drain"], approve=approve
    ).text(folder / "state")


@pytest.mark.parametrize(
    "fault",
    [{"status": 500}, {"status": 410}, {"kind": "empty"}, {"kind": "reset"}, {"kind": "truncated"}],
    ids=lambda fault: "-".join(str(value) for value in fault.values()),
)
def test_no_failure_of_the_service_is_taken_for_the_end_of_an_event(
    server: Server, tmp_path: Path, notebook: Notebook, fault: dict[str, object]
) -> None:
    text = a_file(notebook, tmp_path, approve="never")
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        event_id = _prepared(server, agent)
        # The request that is held now ends with the news of another event; the next ones fail.
        made = server.call("POST", "/v1/faults", {**fault, "method": "GET", "times": 3})
        other = schedule(server, "Freeze", "web")
        until(lambda: _used(server, made["id"]) == 3, "the faults to happen")
        agent.until(other, "ready")

        assert notebook.runs == PREPARED * 2
        for each in (event_id, other):
            server.call("POST", f"/v1/events/{each}/cancel", {"reason": "enough"})
        agent.until(event_id, "finished")
        agent.until(other, "finished")
        assert notebook.counts == {"prepare drain": 2, "undo drain": 2}


@pytest.mark.parametrize("fault", [{"status": 500}, {"kind": "reset"}, {"kind": "truncated"}])
def test_an_approval_that_gets_lost_is_sent_again(
    server: Server, tmp_path: Path, notebook: Notebook, fault: dict[str, object]
) -> None:
    made = server.call("POST", "/v1/faults", {**fault, "method": "POST", "times": 2})
    text = a_file(notebook, tmp_path, approve="when-ready")
    with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
        until(lambda: agent.get("/healthz")[0] == 200, "a document")
        event_id = schedule(server, "Reboot", "web")
        agent.until(event_id, "started")
        server.call("POST", f"/v1/events/{event_id}/complete")
        agent.until(event_id, "finished")

    server.call("DELETE", f"/v1/faults/{made['id']}")
    assert notebook.runs == PREPARED + PUT_BACK


def test_a_server_that_is_killed_and_comes_back_changes_nothing_for_the_event(
    tmp_path: Path, notebook: Notebook
) -> None:
    home = tmp_path / "server"
    home.mkdir()
    (home / "fleet.toml").write_text(FLEET)
    with start(home, "--fleet", "fleet.toml") as first:
        server = ready(first, home)
        text = a_file(notebook, tmp_path, approve="never")
        with an_agent(tmp_path, text, endpoint_of(server, "web")) as agent:
            event_id = _prepared(server, agent)
            first.send_signal(signal.SIGKILL)
            first.wait()
            until(lambda: "scheduled events can't be read" in agent.log(), "it to notice")

            # Where the agent looks for it.
            addresses = ("--metadata", server.metadata, "--control", server.control)
            with start(home, "--fleet", "fleet.toml", *addresses) as second:
                again = ready(second, home)
                assert notebook.runs == PREPARED
                again.call("POST", f"/v1/events/{event_id}/cancel", {"reason": "enough"})
                agent.until(event_id, "finished")
                second.send_signal(signal.SIGTERM)

    assert notebook.runs == PREPARED + PUT_BACK


def _prepared(server: Server, agent: Agent) -> str:
    until(lambda: agent.get("/healthz")[0] == 200, "a document")
    event_id = schedule(server, "Reboot", "web")
    agent.until(event_id, "ready")
    return event_id


def _used(server: Server, fault_id: str) -> int:
    found = server.call("GET", "/v1/faults")["faults"]
    return next(int(fault["used"]) for fault in found if fault["id"] == fault_id)
