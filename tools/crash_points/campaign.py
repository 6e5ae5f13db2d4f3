"""Every point of a subject, one run each: count the calls, then live, die, restart, judge."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.crash_points.subject import Subject, Verdict, refusals
from tools.crash_points.tracing import Injection, Kind, Point, Tracer

_TRIES: Final = 3
"""Threads may take turns in another order, so that a call has another number."""


class UnharmedRunFailsError(Exception):
    """A subject can't be judged that breaks its law by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    point: Point
    kind: Kind
    verdict: Verdict
    reached: bool
    refusals: Sequence[str]
    """What callers, or an operator, were told of it."""
    unclear: Sequence[str]
    """An end that says nothing that anyone could act on."""

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and self.reached and not self.unclear


@dataclass(slots=True, kw_only=True)
class Result:
    name: str
    title: str
    calls: int
    """System calls that write or sync, in each of two runs that nothing happens to."""
    left_out: int
    """Those of only one of the two: threads don't take the same turns each time."""
    trials: list[Trial] = field(default_factory=list)

    @property
    def bad(self) -> list[Trial]:
        return [trial for trial in self.trials if not trial.is_good]

    def counts(self) -> dict[str, int]:
        """For the table, and for programs."""
        tried = Counter(trial.kind for trial in self.trials)
        failed = [trial for trial in self.trials if trial.kind is not Kind.KILL]
        return {
            "calls": self.calls,
            "left_out": self.left_out,
            **{kind.value: tried[kind] for kind in Kind},
            "recovered": sum(trial.verdict.is_good for trial in self.trials),
            "lost": sum(bool(trial.verdict.lost) for trial in self.trials),
            "doubled": sum(bool(trial.verdict.doubled) for trial in self.trials),
            "wrong": sum(bool(trial.verdict.wrong) for trial in self.trials),
            "refused": sum(bool(trial.refusals) for trial in failed),
            "unnoticed": sum(not trial.refusals and not trial.unclear for trial in failed),
            "unclear": sum(bool(trial.unclear) for trial in self.trials),
            "unreached": sum(not trial.reached for trial in self.trials),
        }


Progress = Callable[[Result, int], None]
"""Told after each trial, with how many there are to be."""


class Campaign:
    def __init__(self, tracer: Tracer, folder: Path) -> None:
        """Raises NoTracingError when it runs, where strace can't be used."""
        self._tracer = tracer
        self._folder = folder

    def run(
        self,
        subject: Subject,
        kinds: Iterable[Kind] = tuple(Kind),
        *,
        every: int = 1,
        first: int = 0,
        progress: Progress = lambda *_: None,
    ) -> Result:
        """`every`: take one point of so many, from the `first`; for each kind other points."""
        once, again = self.count(subject), set(self.count(subject))
        points = [point for point in once if point in again]
        result = Result(
            name=subject.name,
            title=subject.title,
            calls=len(points),
            left_out=len(again.symmetric_difference(once)),
        )
        chosen = [
            Injection(point, kind)
            for offset, kind in enumerate(kinds)
            for point in points[(first + offset) % every :: every]
        ]
        for injection in chosen:
            result.trials.append(self.try_point(subject, injection))
            progress(result, len(chosen))
        return result

    def count(self, subject: Subject) -> list[Point]:
        """Raises UnharmedRunFailsError."""
        with self._place(subject) as folder:
            life = self._tracer.start(subject.live, folder)
            told = subject.attend(life)
            life.end()
            verdict = subject.judge(folder, told)
            if life.exit_code != 0 or not verdict.is_good or refusals(told):
                raise UnharmedRunFailsError(f"{subject.name}: {verdict}; it told: {told}")
            return life.points()

    def try_point(self, subject: Subject, injection: Injection) -> Trial:
        for _ in range(_TRIES):
            trial = self._try_once(subject, injection)
            if trial.reached:
                break
        return trial

    @contextmanager
    def _place(self, subject: Subject) -> Iterator[Path]:
        """A folder for what the subject writes, in one for what else belongs to a run."""
        with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
            folder = Path(scratch).resolve() / "state"
            folder.mkdir()
            subject.prepare(folder)
            yield folder

    def _try_once(self, subject: Subject, injection: Injection) -> Trial:
        with self._place(subject) as folder:
            life = self._tracer.start(subject.live, folder, injection)
            told = subject.attend(life)
            life.end()
            unclear = [line for line in told if line.startswith("unclear ")]
            if life.exit_code is None:
                unclear.append("it did not come to an end")
            return Trial(
                point=injection.point,
                kind=injection.kind,
                verdict=subject.judge(folder, told),
                reached=life.was_reached,
                refusals=refusals(told),
                unclear=unclear,
            )
