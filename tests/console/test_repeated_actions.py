"""A lost race is run again: every form of the console does what it does as if none had been lost."""

import re
from collections.abc import AsyncIterator, Callable

import httpx2

from forewarned.console.ended_sessions import EndedSessions
from forewarned.core.rules import Rules
from forewarned.service.ports import Snapshot, Store
from tests.bases import a_basis
from tests.builders import HOUR, NOON
from tests.console.console_client import ConsoleClient, console_client
from tests.racing import callers_in, contents, outcome_of_lost_races


async def every_kind_of_form(console: ConsoleClient) -> AsyncIterator[tuple[int, str]]:
    """One after the other: status, and where it leads."""

    def answered(answer: httpx2.Response) -> tuple[int, str]:
        return answer.status_code, answer.headers.get("Location", "")

    set_ = {"name": "shop", "group": "shop", "capacity": "3", "notified": "on", "delay": "10"}
    made = await console.send("/sets/new", **set_, mode="Uniform")
    where = re.sub(r"&done=.*", "", made.headers["Location"])
    yield answered(made)
    yield answered(await console.send("/sets/new", **set_, mode="Uniform"))
    await console.switch_on("shop_0", "web")
    yield answered(await console.send(where, capacity="3", notified="on", delay="7"))
    [path] = re.findall(r'name="id" value="([^"]*)"', await console.see(where))
    yield answered(await console.send("/sets/upgrade", id=path))
    yield answered(await console.send("/actions/restart", vm="web", step="send"))
    yield answered(await console.send("/actions/scale", set=path, capacity="2", step="send"))
    yield answered(await console.confirm("/actions/delete", ("vm", "shop_0"), ("vm", "report")))


def left(snapshot: Snapshot) -> list[object]:
    return [contents(snapshot), snapshot.note("console sessions that were signed out of")]


async def outcome(over: Callable[[Store], Store]) -> tuple[list[tuple[int, str]], list[object]]:
    async with console_client(basis=a_basis(Rules()), over=over) as console:
        answers = [answer async for answer in every_kind_of_form(console)]
        engine = console.use_cases.engine
        await EndedSessions(engine, kept=HOUR).add("one", at=NOON)
        return answers, await engine.ask(left)


async def test_forms_whose_transactions_are_run_twice_do_what_they_do_once(
    anyio_backend: object,
) -> None:
    (answers, _), callers = await outcome_of_lost_races(outcome)

    assert [status for status, _ in answers] == [303, 400, 303, 303, 303, 303, 303]
    assert callers >= callers_in("console")
