"""A lost race is run again: every step of a start-up file is taken as if none had been lost."""

from collections.abc import Callable
from pathlib import Path

from forewarned.clock import VirtualClock
from forewarned.control.startup.application import carry_out
from forewarned.control.startup.files import load_startup
from forewarned.core.rules import Rules
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.faults import Faults
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from forewarned.service.ports import Snapshot, Store
from tests.bases import a_basis, a_store
from tests.builders import NOON, OPERATOR
from tests.racing import callers_in, contents, outcome_of_lost_races

RULES = Rules(short_notice_allowed=True)
VMS = tuple(VirtualMachine(name=name, host=f"of-{name}") for name in ("web", "db"))
STEPS = """\
[[step]]
do = "schedule"
type = "Reboot"
vms = ["web"]

[[step]]
do = "maintain"
vm = "db"

[[step]]
do = "fail"
vm = "web"

[[step]]
do = "fault"
status = 503
"""


async def test_steps_whose_transactions_are_run_twice_are_taken_once(tmp_path: Path) -> None:
    (tmp_path / "steps.toml").write_text(STEPS)
    [steps] = load_startup([tmp_path / "steps.toml"]).step_files

    def question(snapshot: Snapshot) -> tuple[object, str | None]:
        return contents(snapshot), snapshot.note(f"startup {steps.name}")

    async def outcome(over: Callable[[Store], Store]) -> tuple[object, str | None]:
        clock = VirtualClock(NOON, speed=0)
        async with a_store(clock, RULES) as store:
            faults = Faults(allowed=True)
            made = Application(over(store), clock, a_basis(RULES), BoardDelivery(), faults=faults)
            await made.use_cases.fleet.apply(FleetPlan(vms=VMS), by=OPERATOR)
            await carry_out([steps], made.use_cases)
            return await made.use_cases.engine.ask(question)

    (_, note), callers = await outcome_of_lost_races(outcome)

    assert note is not None
    assert callers >= callers_in("control.startup")
