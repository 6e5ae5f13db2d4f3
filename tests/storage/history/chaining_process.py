"""Writes history and chains it, in a process that a test kills: prints what is acknowledged."""

import asyncio
import sys
from itertools import count
from pathlib import Path

from forewarned.clock import VirtualClock
from forewarned.service.ports import Store
from tests.builders import NOON
from tests.postgresql.databases import Database
from tests.storage.history.stored_history import Place, PostgresPlace, SqlitePlace, record


async def main(where: str, life: str) -> None:
    clock = VirtualClock(NOON, speed=0)
    place: Place = (
        PostgresPlace(Database(url=where, name=""), clock)
        if "://" in where
        else SqlitePlace(Path(where), clock)
    )
    async with place.store() as store, asyncio.TaskGroup() as tasks:
        tasks.create_task(_write(store, life))
        tasks.create_task(_chain(store))


async def _write(store: Store, life: str) -> None:
    for number in count():
        cause = f"{life}.{number}"
        await store.transact(record(cause))
        sys.stdout.write(f"{cause}\n")
        sys.stdout.flush()


async def _chain(store: Store) -> None:
    while True:
        await store.transact(lambda tx: tx.chain_history(3))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
