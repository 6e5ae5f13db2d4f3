"""Every function that has a transaction function run is run over a store that loses its races."""

from typing import Final

from tests.racing import Caller, callers_in
from tests.source_tree import ROOT

_IN_MEMORY: Final = "an emulator's, in memory, with no one to lose a race to"
_ONE_ROW: Final = "writes one row, of values that were made before"
# The parts whose callers are all run so, and by which tests.
CHECKED_BY: Final = {
    "console": "console/test_repeated_actions.py",
    "control.arm": "control/arm/test_repeated_operations.py",
    "control.startup": "control/startup/test_repeated_steps.py",
    "publishing": "publishing/test_repeated_turns.py",
    "service": "service/test_repeated_transactions.py",
}
# The others, and why they need not be.
NOT_CHECKED: Final = {
    Caller("forewarned.control.http.access", "Access._record"): _ONE_ROW,
    Caller("forewarned.runtime.assembly", "Application._record_time"): _ONE_ROW,
    Caller("forewarned.runtime.delivery.player", "RecordedApprovals.approve"): _ONE_ROW,
    Caller("forewarned.scenarios.stages.fleet", "make"): _IN_MEMORY,
    Caller("forewarned.scenarios.stages.in_process", "EmulatorStage._delete"): _IN_MEMORY,
    Caller("forewarned.testing._vm", "Vm._delete_untold"): _IN_MEMORY,
}


def test_who_decides_is_checked_by_its_part_or_is_listed_with_a_reason() -> None:
    checked = {part: callers_in(part) for part in CHECKED_BY}

    assert callers_in("") - set().union(*checked.values()) == NOT_CHECKED.keys()
    assert all(checked.values())
    for part, name in CHECKED_BY.items():
        assert f'callers_in("{part}")' in (ROOT / "tests" / name).read_text()
