"""The end of a client, whatever it is doing at that moment."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import pytest

from forewarned.client import (
    AsyncScheduledEvents,
    ChangeKind,
    ClosedError,
    ScheduledEvents,
    ScheduledEventsError,
)
from forewarned.client._endpoint.discovery import Discovery
from tests.client.drivers import MakeDriver
from tests.client.flows import ID, a_body, an_event
from tests.client.scripted import RESET, SILENCE, an_answer, answering

GOOD = an_answer(a_body(2, an_event()))
LONG_POLL = an_answer(a_body(2, an_event()), "200 OK", "Forewarned-Wait: 60s")
T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> "Future[T]":
    coming: Future[T] = Future()

    def run() -> None:
        try:
            coming.set_result(call())
        except ScheduledEventsError as error:
            coming.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return coming


def test_closing_ends_a_watch_of_another_thread() -> None:
    told = threading.Event()

    def follow(events: ScheduledEvents) -> None:
        for _ in events.watch(poll=3600):
            told.set()

    with answering(GOOD) as service, ScheduledEvents(service.address) as events:
        thread = threading.Thread(target=follow, args=[events])
        thread.start()
        assert told.wait(9)
    thread.join(9)

    assert not thread.is_alive()
    with pytest.raises(ClosedError):
        events.document()


@pytest.mark.parametrize("script", [[SILENCE], [LONG_POLL, SILENCE]])
def test_closing_ends_the_request_that_a_watch_waits_for(
    script: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """The first read has minutes and a long poll is held for one; SIGTERM waits for neither."""
    ended = threading.Event()

    def follow(events: ScheduledEvents) -> None:
        for _ in events.watch():
            pass
        ended.set()

    with answering(*script) as service, ScheduledEvents(service.address) as events:
        threading.Thread(target=follow, args=[events], daemon=True).start()
        for _ in script:
            service.requests.get(timeout=9)
        events.close()

        assert ended.wait(9)
    assert caplog.records == []


def test_closing_lets_an_approval_of_another_thread_have_its_answer() -> None:
    with answering(GOOD) as service, ScheduledEvents(service.address) as events:
        service.may_answer.clear()
        approvals = in_thread(lambda: events.approve(ID))
        service.requests.get(timeout=9)
        events.close()
        service.may_answer.set()

        assert approvals.result(9) is None


def test_closing_lets_a_call_of_another_thread_try_no_more() -> None:
    with answering(RESET) as service, ScheduledEvents(service.address) as events:
        service.may_answer.clear()
        asking = in_thread(events.document)
        service.requests.get(timeout=9)
        events.close()
        service.may_answer.set()

        assert isinstance(asking.exception(9), ClosedError)
        assert service.requests.empty()


def test_closing_does_not_wait_for_the_search_of_an_endpoint() -> None:
    searching, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def is_answered(_: str) -> bool:
        searching.set()
        return may_end.wait(9)

    def follow(events: ScheduledEvents) -> None:
        if list(events.watch()) == []:
            ended.set()

    events = ScheduledEvents()
    events._discovery = Discovery(environment={}, is_answered=is_answered)
    threading.Thread(target=follow, args=[events], daemon=True).start()
    assert searching.wait(9)
    events.close()
    assert not ended.is_set()
    may_end.set()

    assert ended.wait(9)


@pytest.mark.parametrize("script", [[SILENCE], [GOOD, SILENCE], [LONG_POLL, SILENCE]])
async def test_closing_ends_a_watch_of_another_task(
    script: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    with answering(*script) as service:
        events = AsyncScheduledEvents(service.address)

        async def follow() -> list[ChangeKind]:
            return [change.kind async for change in events.watch(poll=0.01)]

        task = asyncio.create_task(follow())
        for _ in script:
            await asyncio.to_thread(service.requests.get, timeout=9)
        await events.close()

        assert await asyncio.wait_for(task, 9) == [ChangeKind.APPEARED] * (len(script) - 1)
    assert caplog.records == []


async def test_closing_ends_the_pause_of_a_watch_of_another_task() -> None:
    with answering(GOOD) as service:
        events = AsyncScheduledEvents(service.address)
        watching = events.watch(poll=3600)
        await anext(watching)
        rest = asyncio.ensure_future(anext(watching, None))
        await asyncio.sleep(0)
        await events.close()

        assert await asyncio.wait_for(rest, 9) is None


async def test_closing_lets_an_approval_of_another_task_have_its_answer() -> None:
    with answering(GOOD) as service:
        events = AsyncScheduledEvents(service.address)
        service.may_answer.clear()
        approvals = asyncio.create_task(events.approve(ID))
        await asyncio.to_thread(service.requests.get, timeout=9)
        await events.close()
        service.may_answer.set()

        await asyncio.wait_for(approvals, 9)
        with pytest.raises(ClosedError):
            await events.approve(ID)


async def test_closing_lets_a_call_of_another_task_try_no_more() -> None:
    with answering(RESET) as service:
        events = AsyncScheduledEvents(service.address)
        service.may_answer.clear()
        asking = asyncio.create_task(events.document())
        await asyncio.to_thread(service.requests.get, timeout=9)
        await events.close()
        service.may_answer.set()

        with pytest.raises(ClosedError):
            await asyncio.wait_for(asking, 9)
        assert service.requests.empty()


def test_a_closed_client_asks_nothing_more(client: MakeDriver) -> None:
    with answering(GOOD) as service, client(service.address) as events:
        events.close()
        with pytest.raises(ClosedError, match="object is closed"):
            events.approve(ID)

        assert service.requests.empty()


async def test_a_watch_can_be_cancelled() -> None:
    with answering(GOOD, SILENCE) as service:
        async with AsyncScheduledEvents(service.address) as events:
            first = asyncio.Event()

            async def follow() -> None:
                async for _ in events.watch(poll=0.01):
                    first.set()

            task = asyncio.create_task(follow())
            await first.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        with pytest.raises(ClosedError):
            await events.document()
