"""Commits events to the database named, with many callers at once, and says so, until killed."""

import asyncio
import itertools
import sys
from functools import partial
from pathlib import Path
from typing import Final

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.change import Change, with_event
from forewarned.core.ids import ScopeId
from forewarned.core.rules import Rules
from forewarned.core.transitions import Scheduled
from forewarned.service.ports import Transaction
from forewarned.storage import SqliteStore
from tests.builders import NOON, OPERATOR, a_resource, a_scope, an_event, event_id
from tests.storage.store_calls import keep

CALLERS: Final = 16


def scope_of(caller: int) -> ScopeId:
    return ScopeId(f"scope{caller}")


def schedule(number: int, caller: int, tx: Transaction) -> None:
    event = an_event(event_id(number), resources=[f"vm{caller}"])
    scope = tx.load(scope_of(caller))
    fact = Scheduled(scope_id=scope.id, at=tx.now, event=event)
    tx.save(Change(scope=with_event(scope, event), transitions=(fact,)), by=OPERATOR)


async def commit_for_ever(path: Path) -> None:
    clock = VirtualClock(NOON, speed=0)
    next_wake = partial(lifecycle.next_wake, rules=Rules())
    numbers = itertools.count(1)

    async def call(store: SqliteStore, caller: int) -> None:
        for number in numbers:
            await store.transact(partial(schedule, number, caller))
            sys.stdout.write(f"{event_id(number)}\n")
            sys.stdout.flush()

    async with SqliteStore(path, clock, next_wake=next_wake) as store:
        for caller in range(CALLERS):
            vm = a_resource(f"vm{caller}")
            await keep(store, a_scope(id=scope_of(caller), resources=[vm]))
        async with asyncio.TaskGroup() as group:
            for caller in range(CALLERS):
                group.create_task(call(store, caller))


if __name__ == "__main__":
    asyncio.run(commit_for_ever(Path(sys.argv[1])))
