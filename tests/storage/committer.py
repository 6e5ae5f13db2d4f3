"""Commits one event after another to the database named, and says so, until it is killed."""

import asyncio
import itertools
import sys
from functools import partial
from pathlib import Path

from notbefore.clock import VirtualClock
from notbefore.core import lifecycle
from notbefore.core.change import Change, with_event
from notbefore.core.ids import ScopeId
from notbefore.core.rules import Rules
from notbefore.core.transitions import Scheduled
from notbefore.service.ports import Transaction
from notbefore.storage import SqliteStore
from tests.builders import NOON, OPERATOR, a_scope, an_event, event_id
from tests.storage.keeping import keep

SCOPE1 = ScopeId("scope1")


def schedule(number: int, tx: Transaction) -> None:
    event = an_event(event_id(number))
    fact = Scheduled(scope_id=SCOPE1, at=tx.now, event=event)
    change = Change(scope=with_event(tx.load(SCOPE1), event), transitions=(fact,))
    tx.save(change, by=OPERATOR)


async def commit_for_ever(path: Path) -> None:
    clock = VirtualClock(NOON, speed=0)
    next_wake = partial(lifecycle.next_wake, rules=Rules())
    async with SqliteStore(path, clock, next_wake=next_wake) as store:
        await keep(store, a_scope())
        for number in itertools.count(1):
            await store.transact(partial(schedule, number))
            sys.stdout.write(f"{event_id(number)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(commit_for_ever(Path(sys.argv[1])))
