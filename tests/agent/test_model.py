"""The words and the beginnings of the agent: journals and settings hold on to both."""

from enum import StrEnum

import pytest

from forewarned.agent.model import Approve, Leader, Phase, Progress, Sighting, Step, Verdict
from tests.agent.journeys import a_plan, a_sighting
from tests.builders import MINUTE


@pytest.mark.parametrize(
    ("words", "as_written"),
    [
        (Phase, "prepare undo recover"),
        (Verdict, "done failed timed_out vetoed skipped interrupted"),
        (Approve, "when-ready never always"),
        (Leader, "each first-resource all-ready"),
    ],
)
def test_words_of_journals_and_settings_never_change(words: type[StrEnum], as_written: str) -> None:
    assert [word.value for word in words] == as_written.split()


def test_a_step_of_which_nothing_else_is_said_is_required_and_never_skipped() -> None:
    step = Step(name="drain", timeout=MINUTE)

    assert (step.required, step.cut, step.has_undo, step.expected) == (True, 0, False, None)


def test_an_event_that_was_just_seen_has_not_come_anywhere() -> None:
    """I30."""
    progress = Progress(sighting=a_sighting(), plan=a_plan())

    assert (progress.begun, progress.outcomes, progress.kept) == (frozenset(), {}, {})
    assert (progress.reported_ready, progress.approved) == (False, False)
    assert (progress.is_gone, progress.is_finished) == (False, False)
    assert progress.boot == ""


def test_an_event_of_which_nothing_else_is_said_has_not_started() -> None:
    seen = Sighting(event_id="A", type="Reboot", source="User", resources=(), not_before=None)

    assert (seen.is_started, seen.description, seen.duration) == (False, "", None)
