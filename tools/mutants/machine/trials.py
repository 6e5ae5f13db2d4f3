"""Trials of many edits of modules that the same tests are for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from tools.mutants.machine.edits import Edit
from tools.mutants.machine.processes import Broken, Ended, Job, messages, results
from tools.mutants.machine.sessions import (
    Collected,
    Survey,
    collect,
    import_libraries,
    survey,
    try_anew,
)
from tools.mutants.machine.targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    edit: Edit
    by: str | None
    """The test that has noticed it, or how else that showed; None if it has survived."""
    is_run: bool = True
    """Whether any test runs the line."""


class UneditedTestsFailError(Exception):
    """The tests fail as they are, so they can't judge an edit."""


class TrialError(Exception):
    """An edit could not be tried."""


def try_all(target: Target, edits: Sequence[Edit], *, parallel: int) -> Iterator[Trial]:
    """As they come. Raises UneditedTestsFailError, TrialError."""
    seen = _survey(target)
    import_libraries(seen.libraries)
    tried = []
    for edit in edits:
        if seen.tests_for(edit):
            tried.append(edit)
        else:
            yield Trial(edit=edit, by=None, is_run=False)
    anew = [edit for edit in tried if seen.is_imported(edit)]
    quick = [edit for edit in tried if not seen.is_imported(edit)]
    for edit, result in _try_quickly(target, seen, quick, parallel=parallel):
        if isinstance(result, Broken):
            anew.append(edit)
        else:
            yield Trial(edit=edit, by=_noticed(result))
    for edit, by in _try_anew(target, seen, anew, parallel=parallel):
        yield Trial(edit=edit, by=by)


def _survey(target: Target) -> Survey:
    seen: Survey | None = next(messages(partial(survey, target)), None)
    if seen is None:
        raise UneditedTestsFailError("the process that ran them died")
    if seen.failed:
        raise UneditedTestsFailError("\n".join(seen.failed))
    return seen


def _try_quickly(
    target: Target, seen: Survey, edits: Sequence[Edit], *, parallel: int
) -> Iterator[tuple[Edit, str | Ended | Broken | None]]:
    """Broken where it can't be done so."""

    def work(writer: Connection) -> None:
        collect(target, lambda collected: go_on(collected, writer))

    def go_on(collected: Collected, writer: Connection) -> None:
        fit = {number: edit for number, edit in enumerate(edits) if collected.can_exchange(edit)}
        for result in results(_jobs(seen.tests_for, fit, collected.try_here), parallel=parallel):
            writer.send(result)

    left = dict(enumerate(edits))
    for number, result in messages(work):
        yield left.pop(number), result
    yield from ((edit, Broken("its function was not found")) for edit in left.values())


def _try_anew(
    target: Target, seen: Survey, edits: Sequence[Edit], *, parallel: int
) -> Iterator[tuple[Edit, str | None]]:
    """Most are caught by the tests beside the module, and to import all takes most of the time."""
    left = dict(enumerate(edits))
    for tests_for in (seen.nearest_tests_for, seen.tests_for):
        jobs = _jobs(tests_for, left, partial(try_anew, target))
        for number, result in results(list(jobs), parallel=parallel):
            edit = edits[number]
            if isinstance(result, Broken):
                raise TrialError(f"{edit.module}:{edit.line}: {edit.new}\n{result.why}")
            if result is not None:
                yield left.pop(number), _noticed(result)
    yield from ((edit, None) for edit in left.values())


def _jobs(
    tests_for: Callable[[Edit], Mapping[str, float]],
    edits: Mapping[int, Edit],
    attempt: Callable[[Edit, Mapping[str, float]], str | None],
) -> Iterator[Job[int, str | None]]:
    for number, edit in edits.items():
        if tests := tests_for(edit):
            yield Job(tag=number, work=partial(attempt, edit, tests), seconds=sum(tests.values()))


def _noticed(result: str | Ended | None) -> str | None:
    return result.how if isinstance(result, Ended) else result
