"""Three VMs with an agent each, at 169.254.169.254: an event for two of them, approved by both."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.agents import (
    Agent,
    AgentFile,
    Notebook,
    an_agent,
    schedule,
    status_of,
    until,
)
from tests.end_to_end.namespaces import Network, inside, network, serving_in, within
from tests.end_to_end.server_process import Server

VMS = ("db-0", "db-1", "db-2")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's"),
    pytest.mark.skipif(
        os.geteuid() != 0 and os.environ.get("CI") != "true",
        reason="NOT TESTED: three VMs in network namespaces, which only root may make",
    ),
]


@pytest.fixture(scope="module")
def vms() -> Iterator[Network]:
    with network(len(VMS)) as made:
        yield made


@pytest.fixture(scope="module")
def server(vms: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    names = ", ".join(
        f'{{ name = "{name}", address = "{vms.address(number)}" }}'
        for number, name in enumerate(VMS)
    )
    (folder / "fleet.toml").write_text(
        f'[[availability_sets]]\nname = "db"\nupdate_domains = 1\nvms = [{names}]\n'
    )
    flags = ("--mode", "service", "--clock", "real", "--fleet", "fleet.toml")
    with serving_in(vms.host, folder, *flags, "--control-access", "open") as running:
        yield running


class Vm:
    """One agent in its namespace, whose drain lasts until it is let go."""

    def __init__(self, folder: Path, namespace: str, shared: Path, *, timeout: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.namespace = namespace
        self.notebook = Notebook(path=folder / "runs")
        self._gate = folder / "gate"
        waits = f"while [ ! -e {self._gate} ]; do sleep 0.05; done"
        self.text = AgentFile(
            notebook=self.notebook,
            hooks={"drain": waits},
            more={"drain": {"timeout": "60s"}},
            prepare=["drain"],
            leader="all-ready",
            agent=(
                f'readiness = {{ kind = "directory", path = "{shared}" }}\n'
                f'ready_timeout = "{timeout}"'
            ),
        ).text(folder / "state")
        self.agent: Agent | None = None

    def let_go(self) -> None:
        self._gate.touch()

    def event(self, event_id: str) -> Any:  # JSON, which tests look into
        assert self.agent is not None
        agent = self.agent
        return within(self.namespace, lambda: agent.event(event_id))

    def reaches(self, event_id: str, stage: str) -> bool:
        event = self.event(event_id)
        return event is not None and event["stage"] == stage

    def is_well(self) -> bool:
        assert self.agent is not None
        agent = self.agent
        return within(self.namespace, lambda: agent.get("/healthz"))[0] == 200


@pytest.fixture
def fleet(
    request: pytest.FixtureRequest, vms: Network, server: Server, tmp_path: Path
) -> Iterator[list[Vm]]:
    """Three agents; the parameter is the time-out of their readiness."""
    shared = tmp_path / "shared"
    shared.mkdir()
    with ExitStack() as stack:
        found = []
        for name, namespace in zip(VMS, vms.vms, strict=True):
            vm = Vm(tmp_path / name, namespace, shared, timeout=request.param)
            # A hook outlives an agent that was killed.
            stack.callback(vm.let_go)
            # No endpoint is given: the agent finds Azure's address by itself.
            vm.agent = stack.enter_context(
                an_agent(vm.folder, vm.text, None, before=inside(namespace))
            )
            found.append(vm)
        for vm in found:
            until(vm.is_well, "a document")
        yield found


def make(vms: Network, server: Server, *resources: str) -> str:
    return within(vms.host, lambda: schedule(server, "Reboot", *resources))


def status(vms: Network, server: Server, event_id: str) -> str:
    return within(vms.host, lambda: status_of(server, event_id))


def complete(vms: Network, server: Server, event_id: str) -> None:
    within(vms.host, lambda: server.call("POST", f"/v1/events/{event_id}/complete"))


@pytest.mark.parametrize("fleet", ["1m"], indirect=True)
def test_an_event_of_two_vms_is_approved_only_after_both_are_ready(
    vms: Network, server: Server, fleet: list[Vm]
) -> None:
    one, other, third = fleet
    event_id = make(vms, server, "db-0", "db-1")
    until(lambda: one.notebook.runs and other.notebook.runs, "both to prepare")

    one.let_go()
    until(lambda: one.reaches(event_id, "ready"), "the first to be ready")
    until(lambda: "db-1" in one.event(event_id)["waits_for"], "it to wait for the second")
    assert status(vms, server, event_id) == "Scheduled"

    other.let_go()
    until(lambda: status(vms, server, event_id) == "Started", "the approval")
    complete(vms, server, event_id)
    for vm in (one, other):
        until(lambda vm=vm: vm.reaches(event_id, "finished"), "all to be put back")  # type: ignore[misc]  # the VM of this turn
        assert vm.notebook.runs == ["prepare drain", "undo drain"]
    assert third.event(event_id) is None
    assert third.notebook.runs == []


@pytest.mark.parametrize("fleet", ["3s"], indirect=True)
def test_an_agent_that_dies_is_not_waited_for_longer_than_its_time_out(
    vms: Network, server: Server, fleet: list[Vm]
) -> None:
    one, other, _ = fleet
    event_id = make(vms, server, "db-0", "db-1")
    until(lambda: one.notebook.runs and other.notebook.runs, "both to prepare")
    assert other.agent is not None
    other.agent.kill()

    one.let_go()

    until(lambda: status(vms, server, event_id) == "Started", "the approval")
    assert one.agent is not None
    assert "no longer waiting for silent agents" in one.agent.log()
    complete(vms, server, event_id)
    until(lambda: one.reaches(event_id, "finished"), "all to be put back")


@pytest.mark.parametrize("fleet", ["3s"], indirect=True)
def test_an_agent_that_lives_is_waited_for_however_long_it_prepares(
    vms: Network, server: Server, fleet: list[Vm]
) -> None:
    one, other, _ = fleet
    event_id = make(vms, server, "db-0", "db-1")
    until(lambda: one.notebook.runs and other.notebook.runs, "both to prepare")
    one.let_go()
    until(lambda: one.reaches(event_id, "ready"), "the first to be ready")

    # Twice its time-out, seen by the agent's own clock.
    began = one.event(event_id)["time_left"]
    until(lambda: _seconds(began) - _seconds(one.event(event_id)["time_left"]) > 6, "time to pass")

    assert status(vms, server, event_id) == "Scheduled"
    other.let_go()
    until(lambda: status(vms, server, event_id) == "Started", "the approval")
    complete(vms, server, event_id)


def _seconds(text: str) -> float:
    from forewarned.config.durations import parse_duration

    return parse_duration(text).total_seconds()
