"""The steps of start-up files on a store that stops while they are taken."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from forewarned.control.startup.application import carry_out
from forewarned.control.startup.files import StepFile, load_startup
from forewarned.core import lifecycle
from forewarned.core.model import EventType
from forewarned.core.rules import Rules
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.faults import Faults
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from forewarned.service.listings import EventFilter
from tests.bases import a_basis
from tests.builders import NOON, OPERATOR
from tests.service.fleet.test_apply import Stopping

STEPS = """\
[[step]]
do = "schedule"
type = "Reboot"
vms = ["web"]

[[step]]
do = "fault"
status = 503

[[step]]
do = "maintain"
vm = "db"

[[step]]
do = "schedule"
type = "Redeploy"
vms = ["web", "db"]
"""
MADE = [EventType.REBOOT, EventType.FREEZE, EventType.REDEPLOY, EventType.REDEPLOY]
RULES = Rules(short_notice_allowed=True)
MOST_TRANSACTIONS = 20


class Emulator:
    """Over a store that survives it."""

    def __init__(self, store: Stopping, clock: VirtualClock) -> None:
        self.store = store
        self._application = Application(
            store, clock, a_basis(RULES), BoardDelivery(), faults=Faults(allowed=True)
        )
        self.use_cases = self._application.use_cases

    async def types(self) -> list[EventType]:
        found = await self.use_cases.engine.ask(lambda s: s.events(EventFilter(limit=100)))
        return [each.event.type for each in found]


@pytest.fixture
async def emulator(anyio_backend: object) -> AsyncIterator[Emulator]:
    clock = VirtualClock(NOON, speed=0)
    store = Stopping(None, clock, next_wake=partial(lifecycle.next_wake, rules=RULES))
    async with store:
        made = Emulator(store, clock)
        vms = tuple(VirtualMachine(name=name, host=f"of-{name}") for name in ("web", "db"))
        await made.use_cases.fleet.apply(FleetPlan(vms=vms), by=OPERATOR)
        yield made


@pytest.fixture
def steps(tmp_path: Path) -> tuple[StepFile, ...]:
    (tmp_path / "steps.toml").write_text(STEPS)
    return load_startup([tmp_path / "steps.toml"]).step_files


@pytest.mark.parametrize("transactions", range(MOST_TRANSACTIONS))
async def test_a_start_that_was_cut_short_is_continued_and_schedules_nothing_twice(
    emulator: Emulator, steps: tuple[StepFile, ...], transactions: int
) -> None:
    emulator.store.left = transactions
    try:
        await carry_out(steps, emulator.use_cases)
        was_cut_short = False
    except StoreUnavailableError:
        was_cut_short = True
    emulator.store.left = None

    await carry_out(steps, emulator.use_cases)

    assert sorted(await emulator.types()) == sorted(MADE)
    # The largest number lets all steps through, or some place to be cut short at was left out.
    assert was_cut_short or transactions > len(MADE)
    assert not (was_cut_short and transactions == MOST_TRANSACTIONS - 1)
