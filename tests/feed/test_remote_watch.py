"""Requests that come to a poller, told to those who watch the writer."""

import pytest

from forewarned.service.requests.watch import SeenRequest
from tests.feed.joined import Poller, Writer, polling, until

SEEN = SeenRequest(
    vm="web",
    asks="events",
    method="GET",
    target="/metadata/scheduledevents",
    headers=(("metadata", "true"),),
    body=b"\xff",
    status=200,
)

pytestmark = pytest.mark.anyio


async def test_requests_are_told_while_the_writer_is_watched(
    writer: Writer, poller: Poller
) -> None:
    heard: list[SeenRequest] = []

    with writer.use_cases.requests.heard_by(heard.append):
        await writer.feed.sync()
        poller.watch.requests.tell(SEEN)
        async with polling(writer) as newcomer:
            newcomer.watch.requests.tell(SEEN)
            await until(lambda: len(heard) == 2)
    await writer.feed.sync()

    assert heard == [SEEN, SEEN]
    assert not poller.watch.requests.is_active


async def test_no_request_is_looked_at_while_no_one_watches(writer: Writer, poller: Poller) -> None:
    await writer.feed.sync()

    assert not poller.watch.requests.is_active


async def test_a_new_writer_has_no_watchers(writer: Writer, poller: Poller) -> None:
    with writer.use_cases.requests.heard_by(lambda _: None):
        await until(lambda: poller.watch.requests.is_active)
        await writer.end()
        await until(lambda: not poller.asking.is_open)
        await writer.begin()

        await until(lambda: poller.snapshots == 2)

        assert not poller.watch.requests.is_active
