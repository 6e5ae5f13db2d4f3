"""The journal keeps every fact through crashes, and nothing that was never true."""

import contextlib
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarned.agent.journal import (
    KEPT,
    Began,
    Finished,
    Gone,
    Journal,
    JournalError,
    Noted,
    Planned,
    Seen,
)
from forewarned.agent.model import Phase, Turn
from tests.agent.journeys import EVENT, Journey, a_plan, a_sighting, a_step
from tests.builders import NOON

PLANNED = Planned(
    event_id=EVENT, at=NOON, sighting=a_sighting(), plan=a_plan(a_step(has_undo=True))
)
TURN = Turn(Phase.PREPARE, "drain")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal"


def test_what_was_written_is_there_after_a_restart(path: Path) -> None:
    journey = Journey(a_plan(a_step(has_undo=True), recover=(a_step("check"),)))
    journey.go()
    journey.tell(Gone(event_id=EVENT, at=NOON))
    journey.go()

    with Journal(path) as journal:
        for fact in journey.facts:
            journal.write(fact)
    with Journal(path) as journal:
        assert journal.events == {EVENT: journey.progress}


def test_notes_are_there_for_an_undo_although_its_prepare_was_cut_short(path: Path) -> None:
    """I30."""
    with Journal(path) as journal:
        journal.write(PLANNED)
        journal.write(Began(event_id=EVENT, at=NOON, turn=TURN))
        journal.write(Noted(event_id=EVENT, at=NOON, turn=TURN, notes={"drained": "web/1"}))
        journal.write(Noted(event_id=EVENT, at=NOON, turn=TURN, notes={"weight": "10"}))

    with Journal(path) as journal:
        assert journal.events[EVENT].notes("drain") == {"drained": "web/1", "weight": "10"}
        assert journal.events[EVENT].notes("another") == {}


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_that_a_crash_cut_short_was_never_true(path: Path, cut: int) -> None:
    """I23."""
    with Journal(path) as journal:
        before = journal.write(PLANNED)
        journal.write(Began(event_id=EVENT, at=NOON, turn=TURN))
    path.write_bytes(path.read_bytes()[:-cut])

    with Journal(path) as journal:
        assert journal.events[EVENT] == before
        journal.write(Began(event_id=EVENT, at=NOON, turn=TURN))
    with Journal(path) as journal:
        assert journal.events[EVENT].begun == {TURN}


def test_a_line_that_says_nothing_stops_the_agent_and_says_where(path: Path) -> None:
    with Journal(path) as journal:
        journal.write(PLANNED)
    path.write_bytes(b"nonsense\n" + path.read_bytes())

    with pytest.raises(JournalError, match="line 1"), Journal(path):
        pass


def test_a_fact_about_nothing_is_refused_and_not_kept(path: Path) -> None:
    with Journal(path) as journal:
        with pytest.raises(JournalError):
            journal.write(Seen(event_id=EVENT, at=NOON, sighting=a_sighting()))
        assert journal.events == {}
    assert path.read_bytes() == b""


def test_nothing_is_written_to_a_journal_that_is_not_open(path: Path) -> None:
    with pytest.raises(JournalError, match="not open"):
        Journal(path).write(PLANNED)


def test_what_cannot_be_opened_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(JournalError, match="can't open"), Journal(tmp_path / "file" / "journal"):
        pass


def test_a_journal_that_cannot_be_written_anew_is_left_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S17: a full disk takes a part of what it is given. Lost facts are hooks that run twice."""
    with Journal(path) as journal:
        journal.write(PLANNED)
    before = path.read_bytes() + b"cut sh"
    path.write_bytes(before)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:7]))

    with pytest.raises(JournalError, match="No space left"), Journal(path):
        pass

    assert path.read_bytes() == before


@pytest.mark.parametrize(("later", "remembered"), [(KEPT, True), (2 * KEPT, False)])
def test_finished_events_are_forgotten_after_a_while(
    path: Path, later: timedelta, remembered: bool
) -> None:
    other = "0000000B-0000-4000-8000-000000000000"
    with Journal(path) as journal:
        journal.write(PLANNED)
        journal.write(Finished(event_id=EVENT, at=NOON))
        journal.write(
            Planned(event_id=other, at=NOON + later, sighting=PLANNED.sighting, plan=PLANNED.plan)
        )

    with Journal(path) as journal:
        assert (EVENT in journal.events) is remembered
        assert other in journal.events


# --- on disk before anything else ----------------------------------------------------------------


@contextlib.contextmanager
def calls_to_the_system() -> Iterator[list[str]]:
    """The names of those that change a file, in order, as the interpreter makes them."""
    made: list[str] = []

    # Any: whatever is called.
    def note(_: object, event: str, called: Any) -> None:
        if event == "c_call" and called in {os.write, os.fsync, os.replace}:
            made.append(called.__name__)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield made
    finally:
        sys.setprofile(before)


def test_a_fact_is_on_disk_before_the_next_step(path: Path) -> None:
    """I30: a hook that began before the power went must not be run again."""
    with Journal(path) as journal, calls_to_the_system() as made:
        journal.write(PLANNED)
        journal.write(Began(event_id=EVENT, at=NOON, turn=TURN))

    assert made == ["write", "fsync", "write", "fsync"]


def test_a_new_journal_is_a_name_on_disk_before_it_is_written(path: Path) -> None:
    """I30: facts in a file that no directory knows are gone with the power."""
    with calls_to_the_system() as made, Journal(path):
        pass

    assert made == ["fsync"]


def test_a_journal_that_is_made_anew_is_on_disk_before_it_takes_the_place_of_the_old(
    path: Path,
) -> None:
    """I30: an empty file in its place would be every hook once more."""
    with Journal(path) as journal:
        journal.write(PLANNED)
    path.write_bytes(path.read_bytes() + b'{"cut": "sho')

    with calls_to_the_system() as made, Journal(path):
        pass

    assert made == ["write", "fsync", "replace", "fsync", "fsync"]
