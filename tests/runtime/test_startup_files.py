"""Servers that are given files to begin with: applied once, and whole or not at all."""

import logging
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from forewarned.runtime import single_process
from forewarned.runtime.listeners.sockets import StartError
from forewarned.runtime.settings import load
from forewarned.runtime.single_process import Running
from forewarned.service.listings import EventFilter

ANYWHERE = "127.0.0.1:0"
FLEET = '[[vms]]\nname = "web"\n\n[[vms]]\nname = "db"\n'
REBOOT = '[[step]]\ndo = "schedule"\ntype = "Reboot"\nvms = ["web"]\n'
FAULT = '\n[[step]]\ndo = "fault"\nstatus = 503\n'


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A server that starts takes the whole process's log over."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "startup.d"
    folder.mkdir()
    return folder


def running(files: Path, *, mode: str = "emulator") -> AbstractAsyncContextManager[Running]:
    flags = {"metadata": ANYWHERE, "control": ANYWHERE, "arm": "off", "workers": "0", "mode": mode}
    clock = {} if mode == "service" else {"clock": "paused"}
    where = {"data": files.parent / "data", "startup": files}
    return single_process.running(load(flags={**flags, **clock, **where}, environ={}))


async def vms(server: Running) -> set[str]:
    engine = server.application.use_cases.engine
    return await engine.ask(lambda snapshot: {str(each.name) for each in snapshot.bindings()})


async def events(server: Running) -> list[str]:
    engine = server.application.use_cases.engine
    found = await engine.ask(lambda snapshot: snapshot.events(EventFilter(limit=10)))
    return [f"{each.event.type} {each.event.status}" for each in found]


async def test_an_emulator_begins_with_the_fleet_and_the_events_of_its_files(files: Path) -> None:
    (files / "10-fleet.toml").write_text(FLEET)
    (files / "20-events.toml").write_text(REBOOT + FAULT)

    async with running(files) as server:
        assert await vms(server) == {"web", "db"}
        assert await events(server) == ["Reboot Scheduled"]
        assert len(server.application.use_cases.faults.show()) == 1


async def test_a_restart_schedules_nothing_again_but_makes_the_faults(files: Path) -> None:
    (files / "fleet.toml").write_text(FLEET)
    (files / "steps.toml").write_text(REBOOT + FAULT)

    async with running(files):
        pass
    async with running(files) as server:
        again = await events(server)
        faults = len(server.application.use_cases.faults.show())
    (files / "steps.toml").write_text(REBOOT.replace("web", "db"))
    async with running(files) as server:
        changed = await events(server)

    assert again == ["Reboot Scheduled"]
    assert faults == 1
    assert changed == ["Reboot Scheduled", "Reboot Scheduled"]


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (REBOOT.replace("web", "wbe"), "steps.toml:1: step[0]: no VM is named 'wbe'; did you mean"),
        (f"{REBOOT}\n{REBOOT.replace('Reboot', 'Preempt')}", "steps.toml:6: step[1]: "),
    ],
    ids=["unknown VM", "not a spot VM"],
)
async def test_nothing_is_scheduled_if_a_step_is_refused(
    files: Path, steps: str, told: str
) -> None:
    (files / "fleet.toml").write_text(FLEET)
    (files / "steps.toml").write_text(steps)

    with pytest.raises(StartError) as refused:
        async with running(files):
            pass
    (files / "steps.toml").unlink()
    async with running(files) as server:
        after = await events(server)

    assert told in str(refused.value)
    assert after == []


async def test_a_service_begins_with_the_fleet_of_its_files_but_takes_no_steps(
    files: Path,
) -> None:
    (files / "fleet.toml").write_text(FLEET)
    async with running(files, mode="service") as server:
        assert await vms(server) == {"web", "db"}

    (files / "steps.toml").write_text(REBOOT)
    with pytest.raises(StartError, match="real VMs get no events from a file"):
        async with running(files, mode="service"):
            pass


async def test_an_empty_directory_leaves_the_demo_fleet(files: Path) -> None:
    async with running(files) as server:
        assert "db-1" in await vms(server)
