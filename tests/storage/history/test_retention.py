"""Old history is removed in batches, without anyone being able to hide a removal behind it."""

import asyncio
from datetime import timedelta

import pytest

from forewarned.core.change import Change, with_event, without_event
from forewarned.core.copying import replace
from forewarned.core.ids import HostName, ResourceName
from forewarned.core.transitions import Completed, Scheduled
from forewarned.service.drains.model import Drain, DrainOrder, DrainState, Move
from forewarned.service.errors import UnknownPositionError
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Store, Transaction
from forewarned.service.records import EventRecord, Removal
from forewarned.storage.history.verification import Verified, verify
from tests.builders import HOUR, MINUTE, OPERATOR, A, a_scope, an_event
from tests.storage.history.stored_history import (
    Place,
    chain,
    filled,
    findings,
    found_in,
    record,
    verified,
)
from tests.storage.store_calls import keep

SCOPE = a_scope()
EVENT = an_event(A)


async def begin(
    store: Store, older_than: timedelta, *, every: timedelta = timedelta(0)
) -> Removal | None:
    planned, _ = await store.transact(lambda tx: tx.begin_removal(older_than, every=every))
    return planned


async def step(store: Store, planned: Removal, limit: int = 2) -> Removal:
    planned, _ = await store.transact(lambda tx: tx.remove_history(planned, limit=limit))
    return planned


async def remove(store: Store, older_than: timedelta) -> int:
    planned = await begin(store, older_than)
    if planned is None:
        return 0
    while planned.after < planned.upto:
        planned = await step(store, planned)
    return planned.removed


def schedule(tx: Transaction) -> None:
    fact = Scheduled(scope_id=SCOPE.id, at=tx.now, event=EVENT)
    tx.save(Change(scope=with_event(tx.load(SCOPE.id), EVENT), transitions=(fact,)), by=OPERATOR)


def complete(tx: Transaction) -> None:
    fact = Completed(scope_id=SCOPE.id, at=tx.now, event=EVENT, reason="")
    change = Change(scope=without_event(tx.load(SCOPE.id), A), transitions=(fact,))
    tx.save(change, by=OPERATOR)


async def age(place: Place, store: Store, *, rows: int) -> None:
    """All that there is becomes old, and something new follows it."""
    await chain(store, rows=rows)
    await place.clock.step(48 * HOUR)
    await store.transact(record("new"))
    await chain(store, rows=1)


async def event(store: Store) -> EventRecord | None:
    return await store.read(lambda snapshot: snapshot.event(A))


async def causes(store: Store) -> list[str]:
    rows = await store.read(lambda snapshot: snapshot.history(HistoryFilter()))
    return [row.cause for row in reversed(rows) if row.action != "history_removed"]


async def test_rows_that_are_old_enough_go_and_the_others_are_verified_from_where_they_end(
    place: Place,
) -> None:
    async with filled(place) as store:
        head = verified(place).head
        # Rows are two minutes apart, and numbers may be a minute out of order.
        removed = await remove(store, 9 * MINUTE)
        left = await causes(store)
        await store.transact(record("later"))
        await chain(store, rows=2)

    assert removed in {5, 6}
    assert left == [f"cause {number}" for number in range(removed + 1, 11)]
    found = verified(place, head)
    assert (found.findings, found.removed) == ([], removed)
    assert found.checked == 12 - removed
    [[entries]] = place.sql("SELECT count(*) FROM history_chain")
    assert entries == 13 - removed


async def test_it_is_said_in_history_once_for_all_batches(place: Place) -> None:
    async with filled(place) as store:
        await remove(store, 5 * MINUTE)
        rows = await store.read(
            lambda snapshot: snapshot.history(HistoryFilter(action="history_removed"))
        )

    [said] = rows
    assert said.actor == "server"
    assert "older than 2026-01-05T12:15:00+00:00" in said.cause


async def test_a_node_leaves_out_a_removal_where_another_has_just_begun_one(
    place: Place,
) -> None:
    async with filled(place) as store:
        first = await remove(store, 9 * MINUTE)
        await place.clock.step(4 * MINUTE)
        soon = await begin(store, 9 * MINUTE, every=5 * MINUTE)
        said = await store.read(lambda s: s.history(HistoryFilter(action="history_removed")))
        await place.clock.step(3 * MINUTE)
        later = await begin(store, 9 * MINUTE, every=5 * MINUTE)

    assert first in {5, 6}
    assert (soon, len(said)) == (None, 1)
    assert later is not None


async def test_what_is_wrong_among_the_rest_is_still_found(place: Place) -> None:
    async with filled(place) as store:
        await remove(store, 9 * MINUTE)
        await chain(store, rows=1)
    place.sql("UPDATE history SET cause = 'x' WHERE id = 8")
    place.sql("DELETE FROM history WHERE id = 9")
    place.sql("UPDATE history_chain SET history_id = NULL WHERE history_id = 9")

    assert [found.kind for found in found_in(place)] == ["edited", "removed"]


async def test_a_head_from_before_what_was_removed_can_not_be_compared_and_that_is_said(
    place: Place,
) -> None:
    async with filled(place, 3) as store:
        head = verified(place).head
        for number in range(8):
            await store.transact(record(f"more {number}"))
            await place.clock.step(2 * MINUTE)
        await chain(store, rows=8)
        await remove(store, 5 * MINUTE)

    assert findings(place, head) == [("head_removed", None)]


async def test_nothing_is_removed_where_nothing_is_old_and_the_last_row_stays(
    place: Place,
) -> None:
    async with filled(place, 3) as store:
        young = await remove(store, 10 * HOUR)
        await place.clock.step(48 * HOUR)
        old = await remove(store, HOUR)
        again = await remove(store, HOUR)
        left = await causes(store)

    assert (young, old, again) == (0, 2, 0)
    assert left == ["cause 3"]


async def test_rows_that_are_not_chained_yet_stay(place: Place) -> None:
    async with filled(place, 3) as store:
        await store.transact(record("not chained"))
        await place.clock.step(48 * HOUR)
        await remove(store, HOUR)

        assert await causes(store) == ["cause 3", "not chained"]


async def test_the_rows_of_an_open_event_stay_until_it_is_over(place: Place) -> None:
    async with filled(place, 3) as store:
        await keep(store, SCOPE)
        await store.transact(schedule)
        await store.transact(record("after"))
        await age(place, store, rows=2)

        first = await remove(store, HOUR)
        kept = await store.read(lambda s: s.history(HistoryFilter(event_id=A)))
        between = verified(place)
        await store.transact(complete)
        await place.clock.step(48 * HOUR)
        await store.transact(record("newest"))
        await chain(store, rows=3)
        second = await remove(store, HOUR)
        gone = await store.read(lambda s: s.history(HistoryFilter(event_id=A)))

    assert (first, second) == (4, 3)
    assert [row.action for row in kept] == ["scheduled"]
    assert gone == []
    assert between.findings == []
    assert findings(place) == []


async def test_an_event_goes_with_the_last_row_of_its_history_and_its_tasks_go_with_it(
    place: Place,
) -> None:
    async with filled(place, 3) as store:
        await keep(store, SCOPE)
        await store.transact(schedule)
        place.sql(
            f"""INSERT INTO tasks (event_id, vm, scope_id, type, host, actuator, ended_at)
                VALUES ('{A}', 'vm1', '{SCOPE.id}', 'Reboot', 'host', 'rack', 1)"""
        )
        await store.transact(complete)
        await age(place, store, rows=2)

        planned = await begin(store, HOUR)
        assert planned is not None
        planned = await step(store, planned, limit=4)
        with_a_row_left = await event(store)
        planned = await step(store, planned, limit=4)

        assert planned.removed == 5
        assert with_a_row_left is not None
        assert await event(store) is None
        assert place.sql("SELECT vm FROM tasks") == []
    assert findings(place) == []


async def test_an_event_that_a_drain_goes_by_stays_with_its_history_until_the_drain_is_over(
    place: Place,
) -> None:
    """I22: with the event the drain would forget what became of the VM."""
    drain = Drain(
        host=HostName("host"),
        order=DrainOrder(),
        by="ada",
        began_at=place.clock.now(),
        changed_at=place.clock.now(),
        state=DrainState.MOVING,
        moves=(
            Move(vm=ResourceName("vm1"), actuator="rack", asked_at=place.clock.now(), event_id=A),
        ),
    )
    async with filled(place, 3) as store:
        await keep(store, SCOPE)
        await store.transact(schedule)
        await store.transact(complete)
        await store.transact(lambda tx: tx.put_drain(drain))
        await age(place, store, rows=2)

        first = await remove(store, HOUR)
        kept = await event(store), await store.read(lambda s: s.history(HistoryFilter(event_id=A)))
        await store.transact(lambda tx: tx.put_drain(replace(drain, state=DrainState.CANCELED)))
        second = await remove(store, HOUR)

        assert (first, second) == (3, 2)
        assert kept[0] is not None
        assert [row.action for row in kept[1]] == ["completed", "scheduled"]
        assert await event(store) is None
    assert findings(place) == []


async def test_a_removal_that_is_killed_leaves_history_right_and_is_done_by_the_next(
    place: Place,
) -> None:
    """I23."""
    async with filled(place) as store:
        planned = await begin(store, 3 * MINUTE)
        assert planned is not None
        await step(store, planned, limit=3)
    halfway = verified(place)

    async with place.store() as store:
        await chain(store, rows=1)
        await remove(store, 3 * MINUTE)

    assert (halfway.findings, halfway.removed) == ([], 3)
    assert findings(place) == []


async def test_who_has_missed_what_was_removed_is_told_so(place: Place) -> None:
    async with filled(place, 3) as store:
        old = await store.read(lambda snapshot: snapshot.position())
        for number in range(8):
            await store.transact(record(f"more {number}"))
            await place.clock.step(2 * MINUTE)
        await chain(store, rows=8)
        await remove(store, 5 * MINUTE)
        new = await store.read(lambda snapshot: snapshot.position())

        with pytest.raises(UnknownPositionError, match="retention has removed"):
            await store.read(lambda snapshot: snapshot.history_between(old, new, limit=9))
        assert await store.read(lambda s: s.history_between(new, new, limit=9)) == []


@pytest.mark.parametrize("is_chained", [True, False])
async def test_what_retention_removes_while_history_is_verified_is_not_missed(
    place: Place, is_chained: bool
) -> None:
    loop = asyncio.get_running_loop()
    async with filled(place) as store:

        async def meanwhile() -> None:
            await remove(store, 9 * MINUTE)
            if is_chained:
                await chain(store, rows=1)

        def look() -> Verified:
            # It tells how many rows there are before it reads the first.
            calls = iter([meanwhile])

            def progress(*_: int) -> None:
                for call in calls:
                    asyncio.run_coroutine_threadsafe(call(), loop).result()

            with place.opened() as database:
                return verify(database, None, progress)

        found = await asyncio.to_thread(look)

    assert found.removed in {5, 6}
    assert found.findings == []
