"""Agents that tell each other through the server itself that they are ready.

The server's clock stands still all the while, so that what agents know of each other's lives can
only come from real time.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from forewarned.agent.config.settings import ENDPOINT_VARIABLE, load
from forewarned.agent.readiness.ports import ReadinessError, ReadinessReport, Standing
from forewarned.agent.readiness.server import ServerReports
from forewarned.cli.agent.check import check_targets
from tests.end_to_end.agents import (
    Agent,
    AgentFile,
    Notebook,
    an_agent,
    endpoint_of,
    schedule,
    status_of,
    until,
)
from tests.end_to_end.server_process import WORKERS, Server, serving

FLEET = """\
[[availability_sets]]
name = "db"
update_domains = 1
vms = [{ name = "db-0" }, { name = "db-1" }]

[[vms]]
name = "alone"
"""
NEVER = "0000000A-0000-4000-8000-000000000000"
READY = ReadinessReport(standing=Standing.READY, beat=1)
PREPARING = ReadinessReport(standing=Standing.PREPARING, beat=1)


@pytest.fixture(scope="module", params=WORKERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "fleet.toml").write_text(FLEET)
    with serving(folder, "--workers", request.param, "--fleet", "fleet.toml") as running:
        yield running


class Vm:
    """An agent whose drain lasts until it is let go."""

    def __init__(self, folder: Path, *, timeout: str) -> None:
        self.notebook = Notebook(path=folder / "runs")
        self._gate = folder / "gate"
        waits = f"while [ ! -e {self._gate} ]; do sleep 0.05; done"
        self.text = AgentFile(
            notebook=self.notebook,
            hooks={"drain": waits},
            more={"drain": {"timeout": "60s"}},
            prepare=["drain"],
            leader="all-ready",
            agent=f'readiness = {{ kind = "forewarned" }}\nready_timeout = "{timeout}"',
        ).text(folder / "state")
        self.agent: Agent

    def let_go(self) -> None:
        self._gate.touch()


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Callable[[str, str], Vm]]:
    """Starts the agent of a VM, with a time-out."""
    with ExitStack() as stack:

        def started(name: str, timeout: str) -> Vm:
            folder = tmp_path / name
            folder.mkdir()
            vm = Vm(folder, timeout=timeout)
            # A hook outlives an agent that was killed.
            stack.callback(vm.let_go)
            vm.agent = stack.enter_context(an_agent(folder, vm.text, endpoint_of(server, name)))
            until(lambda: vm.agent.get("/healthz")[0] == 200, "a document")
            return vm

        yield started


def complete(server: Server, event_id: str) -> None:
    server.call("POST", f"/v1/events/{event_id}/complete")


def test_an_event_is_approved_only_after_every_agent_has_said_that_it_is_ready(
    server: Server, start: Callable[[str, str], Vm]
) -> None:
    one, other = start("db-0", "1m"), start("db-1", "1m")
    event_id = schedule(server, "Reboot", "db-0", "db-1")
    until(lambda: one.notebook.runs and other.notebook.runs, "both to prepare")

    one.let_go()
    one.agent.until(event_id, "ready")
    until(lambda: "db-1" in one.agent.event(event_id)["waits_for"], "it to wait for the second")
    assert status_of(server, event_id) == "Scheduled"

    other.let_go()
    until(lambda: status_of(server, event_id) == "Started", "the approval")
    complete(server, event_id)


def test_an_agent_that_dies_is_not_waited_for_longer_than_its_time_out(
    server: Server, start: Callable[[str, str], Vm]
) -> None:
    one, other = start("db-0", "3s"), start("db-1", "3s")
    event_id = schedule(server, "Reboot", "db-0", "db-1")
    until(lambda: one.notebook.runs and other.notebook.runs, "both to prepare")
    other.agent.kill()

    one.let_go()

    until(lambda: status_of(server, event_id) == "Started", "the approval")
    assert "no longer waiting for silent agents" in one.agent.log()
    complete(server, event_id)


def test_an_agent_that_lives_is_waited_for_however_long_it_prepares(
    server: Server, start: Callable[[str, str], Vm]
) -> None:
    one, other = start("db-0", "1s"), start("db-1", "1s")
    event_id = schedule(server, "Reboot", "db-0", "db-1")
    until(lambda: one.notebook.runs and other.notebook.runs, "both to prepare")
    one.let_go()
    one.agent.until(event_id, "ready")

    # Its heartbeats, over more than three times the time-out.
    heard = ServerReports(lambda: endpoint_of(server, "db-0"))
    first = asyncio.run(heard.reports(event_id))["db-1"].beat
    until(
        lambda: asyncio.run(heard.reports(event_id))["db-1"].beat - first > 3_500_000,
        "heartbeats of the one that prepares",
    )

    assert status_of(server, event_id) == "Scheduled"
    other.let_go()
    until(lambda: status_of(server, event_id) == "Started", "the approval")
    complete(server, event_id)


def test_reports_are_kept_for_each_vm_until_the_event_is_over(server: Server) -> None:
    """I12: whose event it is not can't tell it from one that never was."""
    one, other, stranger = (
        ServerReports(lambda name=name: endpoint_of(server, name))  # type: ignore[misc]  # the VM of this turn
        for name in ("db-0", "db-1", "alone")
    )
    for name in ("db-0", "alone"):
        assert (
            server.get(f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01").status == 200
        )
    event_id = schedule(server, "Reboot", "db-0", "db-1")

    async def meet() -> None:
        assert await one.reports(event_id) == {}
        await one.report(event_id, "db-0", PREPARING)
        before = await other.reports(event_id)
        await one.report(event_id, "db-0", PREPARING)
        await other.report(event_id.lower(), "db-1", READY)
        await other.forget(event_id, "db-1")
        after = await one.reports(event_id)
        assert {name: each.standing for name, each in after.items()} == {
            "db-0": Standing.PREPARING,
            "db-1": Standing.READY,
        }
        assert before["db-0"].beat != after["db-0"].beat
        for each in (event_id, NEVER):
            with pytest.raises(ReadinessError, match=f"404.*No event {each} is open"):
                await stranger.report(each, "alone", READY)
            with pytest.raises(ReadinessError, match=f"404.*No event {each} is open"):
                await stranger.reports(each)
        await one.check()

    asyncio.run(meet())
    server.call("POST", f"/v1/events/{event_id}/cancel")
    with pytest.raises(ReadinessError, match="404"):
        asyncio.run(one.reports(event_id))


def test_a_check_of_the_file_tells_whether_the_server_keeps_readiness(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(Vm(tmp_path, timeout="1m").text)

    def problems(endpoint: str) -> tuple[str, ...]:
        settings = load(file, environ={ENDPOINT_VARIABLE: endpoint})
        [found] = [
            target
            for target in asyncio.run(check_targets(settings))
            if target.name == "agent.readiness"
        ]
        assert found.kind == "forewarned"
        return found.problems

    assert problems(endpoint_of(server, "db-0")) == ()
    [problem] = problems("http://127.0.0.1:1")
    assert "can't be reached" in problem
