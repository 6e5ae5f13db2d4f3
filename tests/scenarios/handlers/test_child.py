"""A handler that is a program: how it starts, what it prints, how it ends."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.scenarios.handlers.child import ChildHandler
from forewarned.scenarios.handlers.command import CommandLine
from forewarned.scenarios.handlers.output import LONGEST_LINE, MOST
from forewarned.scenarios.isolation.sandbox import Sandbox
from forewarned.scenarios.observations import Fact, HandlerExited, HandlerPrinted
from forewarned.scenarios.ports import Endpoint, HandlerError

LONG = 60
NO_TIME = timedelta(0)


class Told:
    """What a handler has told, and waiting for more of it."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self._more = asyncio.Event()

    def __call__(self, fact: Fact) -> None:
        self.facts.append(fact)
        self._more.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONG):
            while not is_so():
                self._more.clear()
                await self._more.wait()

    async def until_printed(self, line: str) -> None:
        await self.until(lambda: line in self.lines())

    def lines(self, *, errors: bool = False) -> list[str]:
        return [
            fact.line
            for fact in self.facts
            if isinstance(fact, HandlerPrinted) and fact.is_error is errors
        ]


@asynccontextmanager
async def handler(*words: str) -> AsyncIterator[tuple[ChildHandler, Told]]:
    async with Sandbox(is_isolated=False) as sandbox:
        yield ChildHandler(CommandLine(words=words), sandbox), Told()


def endpoint(folder: Path) -> Endpoint:
    return Endpoint(url="http://127.0.0.1:7", vm="web_0", folder=folder)


async def test_a_handler_tells_what_it_prints_and_then_how_it_ends(tmp_path: Path) -> None:
    async with handler("sh", "-c", "echo one; echo two >&2; printf three; exit 3") as (child, told):
        assert child.exit_code is None
        await child.start(endpoint(tmp_path), told)
        await told.until(lambda: child.exit_code is not None)

    assert (told.lines(), told.lines(errors=True)) == (["one", "three"], ["two"])
    assert told.facts[-1] == HandlerExited(code=3, was_asked=False)
    assert child.exit_code == 3


async def test_a_handler_that_is_killed_was_asked_to_end_and_can_be_started_again(
    tmp_path: Path,
) -> None:
    async with handler("sh", "-c", "echo up; sleep 3600") as (child, told):
        await child.start(endpoint(tmp_path), told)
        await told.until_printed("up")
        await child.kill()
        await child.kill()
        assert told.facts[-1] == HandlerExited(code=-9, was_asked=True)

        await child.start(endpoint(tmp_path), told)
        await told.until(lambda: told.lines() == ["up", "up"])
        assert child.exit_code is None
        await child.stop(NO_TIME)

    assert sum(isinstance(fact, HandlerExited) for fact in told.facts) == 2


async def test_a_handler_that_ignores_signals_is_killed_when_patience_ends(tmp_path: Path) -> None:
    async with handler("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done") as (
        child,
        told,
    ):
        await child.start(endpoint(tmp_path), told)
        await told.until_printed("up")
        await child.stop(timedelta(milliseconds=50))

    assert told.facts[-1] == HandlerExited(code=-9, was_asked=True)


async def test_a_handler_that_becomes_a_daemon_still_runs(tmp_path: Path) -> None:
    async with handler("sh", "-c", "(sleep 0.1; echo up; sleep 3600) & exit 0") as (child, told):
        await child.start(endpoint(tmp_path), told)
        await told.until_printed("up")
        assert child.exit_code is None
        await child.kill()

    assert told.facts[-1] == HandlerExited(code=0, was_asked=True)


async def test_a_flood_of_output_is_cut_and_does_not_stop_the_handler(tmp_path: Path) -> None:
    script = f"import sys; sys.stdout.write('x' * 79 + '\\n'); sys.stdout.write(('y' * 79 + '\\n') * {2 * MOST // 80}); sys.stdout.flush(); print('done', file=sys.stderr)"
    async with handler(sys.executable, "-ISc", script) as (child, told):
        await child.start(endpoint(tmp_path), told)
        await told.until(lambda: child.exit_code == 0)

    assert told.lines(errors=True) == ["done"]
    assert MOST <= sum(len(line) + 1 for line in told.lines()) < 1.5 * MOST
    assert told.lines()[-1].startswith("(more than 256 KiB")


async def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    async with handler(sys.executable, "-ISc", "print('x' * 50000)") as (child, told):
        await child.start(endpoint(tmp_path), told)
        await told.until(lambda: child.exit_code == 0)

    assert max(len(line) for line in told.lines()) == LONGEST_LINE


async def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async with handler("no-such-program") as (child, told):
        with pytest.raises(HandlerError, match=r"can't run 'no-such-program' \(No such file"):
            await child.start(endpoint(tmp_path), told)
