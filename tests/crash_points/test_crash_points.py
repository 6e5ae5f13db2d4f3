"""F8, F9: a part that dies at any call that writes, or whose disk fails there, loses nothing.

A sample of the points, in seconds; `make crash-points` and the thorough test try all of them.
"""

import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from typing_extensions import override

from forewarned.agent.journal import AnyFact, Began, Ended
from forewarned.agent.model import Progress
from forewarned.storage import SqliteStore
from tests.packages import give_up, need
from tools.crash_points.campaign import Campaign, Trial, UnharmedRunFailsError
from tools.crash_points.catalog import PRELOADED, SUBJECTS
from tools.crash_points.subject import ACKED, Life, Tell, Verdict, compare
from tools.crash_points.subjects.journal import JournalSubject, ToldJournal
from tools.crash_points.subjects.store import Requests, StoreSubject
from tools.crash_points.tracing import Injection, Kind, NoTracingError, Point, Tracer

T = TypeVar("T")

SAMPLE = {"store": 60, "outbox": 70, "journal": 15, "marks": 11, "runner": 12}
"""Of how many points one is tried, for each kind."""


@pytest.fixture(scope="module")
def tracer() -> Tracer:
    need("strace")
    return Tracer([*PRELOADED, __name__])


@pytest.fixture
def campaign(tracer: Tracer, tmp_path: Path) -> Campaign:
    return Campaign(tracer, tmp_path)


def tried(run: Callable[[], T]) -> T:
    try:
        return run()
    except NoTracingError as error:
        give_up(f"processes can't be traced here: {error}")


@pytest.mark.parametrize("name", SAMPLE)
def test_i23_what_dies_or_fails_at_a_call_that_writes_loses_nothing_and_does_nothing_twice(
    campaign: Campaign, name: str
) -> None:
    """I14, I22, I23, I30"""
    result = tried(lambda: campaign.run(SUBJECTS[name](), every=SAMPLE[name]))

    assert len(result.trials) >= len(Kind)
    assert result.bad == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", SUBJECTS)
def test_i23_the_same_at_every_call(campaign: Campaign, name: str) -> None:
    result = tried(lambda: campaign.run(SUBJECTS[name]()))

    assert len(result.trials) == result.calls * len(Kind)
    assert result.bad == []


def test_i14_a_change_that_a_server_calls_unknown_may_be_there_after_a_kill(
    campaign: Campaign,
) -> None:
    """The disk does not confirm the commit of a completed event."""

    def unconfirmed(number: int) -> Trial:
        point = Point("fdatasync", "forewarned.db-wal", number)
        injection = Injection(point, Kind.BROKEN_AND_KILL)
        return tried(lambda: campaign.try_point(SUBJECTS["server"](), injection))

    # How many commits come before it is not this test's concern, and not the same in each run.
    [trial] = itertools.islice(
        (
            each
            for each in map(unconfirmed, [5, 4, 6] * 3)
            if [line.partition(":")[0] for line in each.refusals] == ["unknown completed a"]
        ),
        1,
    )

    assert trial.is_good, trial


@pytest.mark.parametrize(
    "point",
    [Point("pwrite64", "forewarned.db-wal", 1), Point("fdatasync", "forewarned.db-wal", 1)],
    ids=str,
)
def test_a_server_whose_disk_is_full_when_it_starts_says_so(
    campaign: Campaign, point: Point
) -> None:
    trial = tried(lambda: campaign.try_point(SUBJECTS["server"](), Injection(point, Kind.FULL)))

    assert trial.is_good, trial
    [said] = trial.refusals
    assert "check that its disk or its database works and has free space, and start again" in said


# --- what is wrong is found ----------------------------------------------------------------------


class HastyRequests(Requests):
    """Answers before the commit."""

    def __init__(self, store: SqliteStore, tell: Tell) -> None:
        super().__init__(store, lambda line: self._tell_hastily(line, tell))

    @staticmethod
    def _tell_hastily(line: str, tell: Tell) -> None:
        if line.startswith("asked "):
            tell(line)
            tell(line.replace("asked", ACKED, 1))


class LateJournal(ToldJournal):
    """Writes that a hook runs when it has run."""

    _began: AnyFact | None = None

    @override
    def write(self, fact: AnyFact) -> Progress:
        if isinstance(fact, Began):
            self._began = fact
            return self.events[fact.event_id]
        if isinstance(fact, Ended) and self._began is not None:
            super().write(self._began)
        return super().write(fact)


def test_an_answer_before_the_commit_is_found(campaign: Campaign) -> None:
    result = tried(lambda: campaign.run(StoreSubject(HastyRequests), kinds=[Kind.KILL], every=30))

    assert result.counts()["lost"] > 0


def test_a_hook_that_is_written_down_when_it_has_run_is_found(campaign: Campaign) -> None:
    result = tried(lambda: campaign.run(JournalSubject(LateJournal), kinds=[Kind.KILL], every=4))

    assert result.counts()["doubled"] > 0


class HangingSubject:
    name = title = "hanging"

    def prepare(self, folder: Path) -> None:
        pass

    def live(self, folder: Path, tell: Tell) -> None:
        with suppress(OSError):
            (folder / "file").write_bytes(b"all of it")
        threading.Event().wait()

    def attend(self, life: Life) -> list[str]:
        return life.told()

    def judge(self, folder: Path, told: Sequence[str]) -> Verdict:
        return Verdict()


def test_a_process_that_does_not_come_to_an_end_is_found(tmp_path: Path) -> None:
    need("strace")
    campaign = Campaign(Tracer([*PRELOADED, __name__], patience=0.5), tmp_path)
    broken = Injection(Point("write", "file", 1), Kind.BROKEN)

    trial = tried(lambda: campaign.try_point(HangingSubject(), broken))

    assert trial.unclear == ["it did not come to an end"]
    with pytest.raises(UnharmedRunFailsError):
        campaign.count(HangingSubject())


@pytest.mark.parametrize(
    ("told", "recovered", "verdict"),
    [
        (["asked a", "acked a", "asked b"], ["a"], Verdict(lost=[], doubled=[], wrong=[])),
        (["asked a", "acked a", "asked b"], ["a", "b"], Verdict(lost=[], doubled=[], wrong=[])),
        (["asked a", "acked a"], [], Verdict(lost=["a"], doubled=[], wrong=[])),
        (["asked a"], ["a", "a"], Verdict(lost=[], doubled=["a"], wrong=[])),
        ([], ["a"], Verdict(lost=[], doubled=[], wrong=["no one asked for it: a"])),
        (
            ["asked a", "refused a: full"],
            ["a"],
            Verdict(lost=[], doubled=[], wrong=["refused, and there: a"]),
        ),
        (["asked a", "unknown a: why"], ["a"], Verdict(lost=[], doubled=[], wrong=[])),
        (
            ["asked a", "refused a: full", "asked a", "acked a"],
            ["a"],
            Verdict(lost=[], doubled=[], wrong=[]),
        ),
    ],
)
def test_the_law_is_acked_in_recovered_in_acked_and_unanswered(
    told: list[str], recovered: list[str], verdict: Verdict
) -> None:
    assert compare(told, recovered) == verdict
