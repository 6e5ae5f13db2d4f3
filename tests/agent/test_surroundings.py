"""The agent's state directory, its boot, its clock, and events that overlap."""

from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.agent.boot_id import boot_id
from forewarned.agent.lock import StateInUseError, UnusableStateError, sole_agent
from forewarned.agent.model import HookOutcome, Phase, Progress, Turn, Verdict
from forewarned.agent.overlaps import held_back_by
from forewarned.agent.service_clock import ServiceClock
from forewarned.agent.status.report import keeps_from_work, stage
from forewarned.agent.status.wire import Stage
from tests.agent.journeys import EVENT, a_plan, a_sighting, a_step
from tests.agent.stubs import DONE, a_contact
from tests.builders import NOON, SECOND


def test_only_one_agent_has_a_state_directory(tmp_path: Path) -> None:
    state = tmp_path / "new" / "state"

    with (
        sole_agent(state),
        pytest.raises(StateInUseError, match="another agent"),
        sole_agent(state),
    ):
        pass
    with sole_agent(state):
        assert (state / "lock").exists()


def test_a_state_directory_that_cannot_be_made_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UnusableStateError), sole_agent(tmp_path / "file" / "state"):
        pass


def test_the_boot_id_is_the_systems_and_empty_where_it_has_none(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("abc\n")

    assert boot_id(tmp_path / "boot_id") == "abc"
    assert boot_id(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("off_by", "corrected"),
    [(0, False), (2, False), (-2, False), (3, True), (-600, True)],
)
def test_a_clock_that_is_wrong_is_corrected_by_the_services(off_by: int, corrected: bool) -> None:
    own = NOON + 10 * SECOND + timedelta(seconds=off_by)
    contact = a_contact(at=NOON, age=10 * SECOND)

    now = ServiceClock(lambda: contact, own=lambda: own).now()

    assert now == (NOON + 10 * SECOND if corrected else own)


def test_before_the_first_document_there_is_only_the_vms_own_clock() -> None:
    contact = a_contact(at=None, age=None)

    assert ServiceClock(lambda: contact, own=lambda: NOON).now() == NOON


# --- overlapping events --------------------------------------------------------------------------

PLAN = a_plan(a_step("drain", has_undo=True), recover=(a_step("check"),))
UNDO = Turn(Phase.UNDO, "drain")


def a_progress(**more: object) -> Progress:
    fields: dict[str, object] = {"sighting": a_sighting(), "plan": PLAN} | more
    return Progress(**fields)  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("turn", "other", "is_held"),
    [
        (UNDO, a_progress(), True),
        (Turn(Phase.RECOVER, "check"), a_progress(), True),
        (UNDO, a_progress(is_gone=True), False),
        (UNDO, a_progress(is_finished=True), False),
        (UNDO, a_progress(plan=a_plan(a_step("tell"))), False),
        (Turn(Phase.PREPARE, "drain"), a_progress(), False),
    ],
)
def test_nothing_is_put_back_that_another_event_needs(
    turn: Turn, other: Progress, is_held: bool
) -> None:
    events = {"mine": a_progress(is_gone=True), "other": other}

    assert held_back_by("mine", turn, events, {}) == (EVENT if is_held else None)


def test_no_event_holds_itself_back() -> None:
    assert held_back_by("mine", UNDO, {"mine": a_progress()}, {}) is None


@pytest.mark.parametrize(("target", "is_held"), [("web/app", True), ("web/other", False)])
def test_what_another_hook_has_found_drained_is_not_put_back_under_it(
    target: str, is_held: bool
) -> None:
    events = {"mine": a_progress(is_gone=True), "other": a_progress(plan=a_plan(a_step("leave")))}
    targets = {"drain": frozenset({"web/app"}), "leave": frozenset({target})}

    assert held_back_by("mine", UNDO, events, targets) == (EVENT if is_held else None)


# --- stages --------------------------------------------------------------------------------------

PREPARED = {Turn(Phase.PREPARE, "drain"): DONE}
SKIPPED = {Turn(Phase.PREPARE, "drain"): HookOutcome(verdict=Verdict.SKIPPED)}
STARTED = a_sighting(is_started=True)


@pytest.mark.parametrize(
    ("progress", "expected", "is_out_of_use"),
    [
        (a_progress(), Stage.PREPARING, True),
        (a_progress(begun=frozenset(PREPARED)), Stage.PREPARING, True),
        (a_progress(outcomes=PREPARED), Stage.READY, True),
        (a_progress(outcomes=SKIPPED), Stage.NOT_PREPARED, False),
        (a_progress(outcomes=PREPARED, sighting=STARTED), Stage.STARTED, True),
        (a_progress(outcomes=PREPARED, is_gone=True), Stage.RESTORING, True),
        (a_progress(outcomes=PREPARED | {UNDO: DONE}, is_gone=True), Stage.RESTORING, False),
        (a_progress(outcomes=SKIPPED, is_gone=True), Stage.RESTORING, False),
        (a_progress(is_finished=True), Stage.FINISHED, False),
        (a_progress(plan=a_plan()), Stage.READY, False),
    ],
)
def test_a_vm_is_out_of_use_from_its_first_prepare_hook_until_all_is_undone(
    progress: Progress, expected: Stage, is_out_of_use: bool
) -> None:
    assert stage(progress) is expected
    assert keeps_from_work(progress) is is_out_of_use
