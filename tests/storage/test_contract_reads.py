"""What every store promises about the times of reads, about due scopes and about leases."""

import asyncio
from dataclasses import replace

from forewarned.clock import VirtualClock
from forewarned.core.change import Change
from forewarned.core.ids import ScopeId
from forewarned.core.model import Scope
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Store, Transaction
from tests.builders import DAY, HOUR, NOON, OPERATOR, A, a_scope, an_event
from tests.storage.store_calls import cache, keep, load

SCOPE1 = ScopeId("scope1")


async def test_a_mark_moves_the_time_of_the_last_read_and_nothing_else(store: Store) -> None:
    """I26, I29: no revision, no history, no wake."""
    await keep(store, a_scope(an_event(A, not_before=NOON + HOUR), last_read_at=NOON - DAY / 2))
    [before] = await cache(store)
    wake = await store.read(lambda s: s.next_wake())

    await store.mark_read({SCOPE1: NOON}, older_by=HOUR)

    assert await cache(store) == [replace(before, scope=replace(before.scope, last_read_at=NOON))]
    assert await store.read(lambda s: s.next_wake()) == wake
    assert await store.read(lambda s: s.history(HistoryFilter())) == []


async def test_only_active_scopes_whose_mark_is_old_enough_are_marked(store: Store) -> None:
    """I28: deactivation stays, and marks never go back."""
    await keep(
        store,
        a_scope(last_read_at=NOON - HOUR),
        a_scope(id="scope2", resources=[], last_read_at=NOON - HOUR / 2),
        a_scope(id="later", resources=[], last_read_at=NOON + HOUR),
        a_scope(id="unread", resources=[], last_read_at=None),
        a_scope(id="asleep", resources=[], active=False, last_read_at=NOON - DAY),
    )
    marks = dict.fromkeys(
        map(ScopeId, ("scope1", "scope2", "later", "unread", "asleep", "no")), NOON
    )

    await store.mark_read(marks, older_by=HOUR)

    assert [saved.scope.last_read_at for saved in await cache(store)] == [
        NOON,
        NOON - HOUR / 2,
        NOON + HOUR,
        NOON,
        NOON - DAY,
    ]


async def test_a_mark_is_there_for_those_who_load_and_save_the_scope_next(
    sole_store: Store,
) -> None:
    """I28: not even functions that share its commit overwrite it."""
    await keep(sole_store, a_scope(last_read_at=NOON - DAY / 2), a_scope(id="scope2", resources=[]))

    def change(tx: Transaction) -> Scope:
        scope = tx.load(SCOPE1)
        tx.save(Change(scope=replace(scope, incarnation=scope.incarnation + 1)), by=OPERATOR)
        return scope

    (before, _), _, (after, _) = await asyncio.gather(
        sole_store.transact(change),
        sole_store.mark_read({SCOPE1: NOON}, older_by=HOUR),
        sole_store.transact(change),
    )

    assert before.last_read_at == NOON - DAY / 2
    assert after.last_read_at == NOON
    assert (await load(sole_store)).last_read_at == NOON
    assert (await load(sole_store)).incarnation == before.incarnation + 2


async def test_a_claimed_scope_that_was_read_since_is_not_due_again(
    store: Store, clock: VirtualClock
) -> None:
    """I20, I28: its wake is set anew when it is saved, although nothing else has changed."""
    await keep(store, a_scope(last_read_at=NOON - DAY))
    await store.mark_read({SCOPE1: NOON - HOUR}, older_by=HOUR)
    [before] = await cache(store)

    def wake(tx: Transaction) -> list[ScopeId]:
        due = tx.claim_due(9)
        for scope in tx.load_all(due):
            tx.save(Change(scope=scope), by=OPERATOR)
        return due

    first, commit = await store.transact(wake)
    second, _ = await store.transact(wake)
    await clock.step(DAY - HOUR)
    third, _ = await store.transact(wake)

    assert (first, second, third) == ([SCOPE1], [], [SCOPE1])
    assert await store.read(lambda snapshot: snapshot.next_wake()) == NOON - HOUR + DAY
    assert (commit.scopes, commit.shown) == ((), ())
    assert await cache(store) == [before]


async def test_one_holds_a_lease_at_a_time(store: Store) -> None:
    held: list[str] = []

    async def hold(holder: str) -> None:
        async with store.lease("fleet") as lease:
            held.append(holder)
            for _ in range(3):
                await store.transact(lease.check)
            held.append(holder)

    async with store.lease("fleet") as lease:
        waiting = [asyncio.create_task(hold(holder)) for holder in ("a", "b")]
        async with store.lease("another"):
            await store.transact(lease.check)
        assert held == []
    await asyncio.gather(*waiting)

    assert sorted(held[:2]) in (["a", "a"], ["b", "b"])
    assert sorted(held) == ["a", "a", "b", "b"]


async def test_a_lease_is_free_again_when_its_holder_fails(store: Store) -> None:
    async def fail() -> None:
        async with store.lease("fleet"):
            raise ZeroDivisionError

    results = await asyncio.gather(fail(), fail(), return_exceptions=True)

    assert [type(result) for result in results] == [ZeroDivisionError] * 2
