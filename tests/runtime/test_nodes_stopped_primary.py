"""PostgreSQL's primary stands still, as a VM does whose host hangs, and its standby takes over."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import pytest

from forewarned.service.errors import StoreUnavailableError, UnknownOutcomeError
from tests.postgresql.databases import Database
from tests.postgresql.pauses import paused
from tests.postgresql.servers import private_folder
from tests.postgresql.standby import ServerPair, server_pair
from tests.runtime.running_nodes import WEB, Nodes, running_nodes

T = TypeVar("T")

DATABASE = "forewarned"
EVENTS = "SELECT id FROM events"
FRESH = 1_000_000_000
"""Nanoseconds of lag."""


@pytest.fixture
def pair() -> Iterator[ServerPair]:
    # Nothing but the nodes keeps the old primary from taking writes when it is back.
    with private_folder() as folder, server_pair(folder, is_synchronous=False) as running:
        running.primary.ask(f"CREATE DATABASE {DATABASE}")
        yield running


async def _until_it_works(call: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(60):
        while True:
            try:
                return await call()
            except StoreUnavailableError:
                await asyncio.sleep(0.1)


async def _until_fresh(nodes: Nodes) -> None:
    following = nodes.running[0].application.following
    assert following is not None
    async with asyncio.timeout(60):
        while following.lag > FRESH:
            await following.caught_up()


def _events(pair: ServerPair) -> tuple[set[str], set[str]]:
    """Those of the primary, and those of the other one."""
    first, other = (
        {str(row[0]) for row in server.ask(EVENTS, database=DATABASE)}
        for server in (pair.primary, pair.other)
    )
    return first, other


@pytest.mark.thorough
async def test_a_node_leaves_a_primary_that_stands_still_for_the_one_that_took_over(
    pair: ServerPair, tmp_path: Path
) -> None:
    """I7, I14, I20. Stopped processes keep their connections, so none of them ever breaks."""
    database = Database(url=pair.url(DATABASE), name=DATABASE)
    async with running_nodes(database, tmp_path, 1) as nodes:
        seen = [await nodes.incarnation(0)]
        events = [await nodes.schedule(0)]
        pair.wait_until_caught_up()
        engine = nodes.running[0].application.use_cases.engine
        # Those of all hosts, in the order in which nodes try them.
        assert str(pair.primary.port) in database.url.partition(",")[0]

        with paused(*pair.primary.pids):
            began = time.monotonic()
            under_way = asyncio.gather(
                engine.ask(lambda snapshot: snapshot.now),
                nodes.schedule(0),
                return_exceptions=True,
            )
            await asyncio.to_thread(pair.promote)
            read, written = await under_way
            await _until_fresh(nodes)
            events.append(await _until_it_works(lambda: nodes.schedule(0)))
            took = time.monotonic() - began
            seen.append(await nodes.incarnation(0))

        # It is back, the first host of all, and believes that it is the primary: more so while the
        # real one restarts.
        await asyncio.to_thread(pair.primary.stop, immediate=True)
        with pytest.raises(StoreUnavailableError):
            await nodes.schedule(0)
        await asyncio.to_thread(pair.primary.start)
        await _until_fresh(nodes)
        events.append(await _until_it_works(lambda: nodes.schedule(0)))
        seen.append(await nodes.incarnation(0))
        polled = await nodes.request(0, vm=WEB)
        found, lost = _events(pair)

    assert took < 20
    # A question is asked again, and whether a change was made may be unknown.
    assert isinstance(read, datetime)
    assert isinstance(written, str | UnknownOutcomeError)
    assert seen == sorted(set(seen))
    assert polled.status == 200
    assert found >= set(events)
    assert len(found) <= len(events) + 1
    assert lost == {events[0]}
