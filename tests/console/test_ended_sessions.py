"""S13: what was signed out of stays so, for as long as a copy of its cookie could be used."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from forewarned.clock import VirtualClock
from forewarned.console.ended_sessions import MOST, EndedSessions
from forewarned.service.engine import Engine
from forewarned.service.ports import Store
from tests.bases import a_store
from tests.builders import HOUR, NOON, SECOND

KEPT = timedelta(hours=12)


@pytest.fixture
async def store(anyio_backend: object) -> AsyncIterator[Store]:
    async with a_store(VirtualClock(NOON, speed=0)) as made:
        yield made


async def test_another_process_knows_too(store: Store) -> None:
    await EndedSessions(Engine(store), kept=KEPT).add("one", at=NOON)

    other = EndedSessions(Engine(store), kept=KEPT)

    assert await other.has("one")
    assert not await other.has("two")


async def test_none_is_lost_when_several_sign_out_at_once(store: Store) -> None:
    ended = EndedSessions(Engine(store), kept=KEPT)

    await asyncio.gather(*(ended.add(str(number), at=NOON) for number in range(10)))

    assert all([await ended.has(str(number)) for number in range(10)])


async def test_one_is_forgotten_once_no_copy_of_its_cookie_holds(store: Store) -> None:
    ended = EndedSessions(Engine(store), kept=KEPT)
    await ended.add("old", at=NOON)
    await ended.add("later", at=NOON + HOUR)

    await ended.add("last", at=NOON + KEPT - SECOND)
    assert await ended.has("old")
    await ended.add("last", at=NOON + KEPT)

    assert not await ended.has("old")
    assert await ended.has("later")


async def test_there_are_so_many_and_the_earliest_goes_first(store: Store) -> None:
    ended = EndedSessions(Engine(store), kept=KEPT)

    for number in range(MOST + 1):
        await ended.add(str(number), at=NOON + timedelta(seconds=number))

    assert not await ended.has("0")
    assert await ended.has("1")
    assert await ended.has(str(MOST))
