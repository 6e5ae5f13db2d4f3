"""Read your own writes, through the control API: pollers are in step with it, on every answer."""

from collections.abc import Awaitable, Callable

import pytest

from forewarned.feed.sync import Message, Receive, Scope, Send, SyncedClock, synced_app
from tests.builders import HOUR, NOON
from tests.feed.joined import Poller, Writer

App = Callable[[Scope, Receive, Send], Awaitable[None]]


async def asked(app: App, writer: Writer, method: str, *, heard: Callable[[], object]) -> object:
    """What `heard` says at the moment at which the answer begins."""
    found: list[object] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.append(heard())

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    await synced_app(app, writer.feed)({"type": "http", "method": method}, receive, send)
    [at_the_answer] = found
    return at_the_answer


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_a_change_has_reached_the_pollers_when_it_is_answered(
    writer: Writer, poller: Poller, method: str
) -> None:
    """Commit, tell, answer: a VM that polls in the next instant sees it."""

    async def move(_: Scope, __: Receive, send: Send) -> None:
        # At once, so that no turn of the loop takes it to the pollers by chance.
        writer.clock.catch_up(NOON + HOUR)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    at_the_answer = await asked(move, writer, method, heard=poller.clock.now)

    assert at_the_answer == NOON + HOUR


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_read_knows_what_pollers_have_seen(
    writer: Writer, poller: Poller, method: str
) -> None:
    """Who polls and then asks when that VM last read is told of this poll."""
    poller.counts.documents += 3

    async def look(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    at_the_answer = await asked(look, writer, method, heard=writer.feed.take_counts)

    assert at_the_answer == {"documents": 3}


@pytest.mark.parametrize("moved", ["step", "run"])
async def test_a_clock_is_moved_only_after_what_pollers_have_seen_is_known(
    writer: Writer, poller: Poller, moved: str
) -> None:
    """I28: a poll from before the move counts as of before it."""
    clock = SyncedClock(writer.clock, writer.feed)
    known: list[dict[str, int]] = []
    writer.clock.watch(lambda: known.append(writer.feed.take_counts()))
    poller.counts.documents += 1

    await (clock.step(HOUR) if moved == "step" else clock.run(60))

    assert known[0] == {"documents": 1}
