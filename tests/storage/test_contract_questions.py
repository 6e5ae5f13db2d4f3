"""What every store answers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from forewarned.clock import VirtualClock
from forewarned.core.change import with_event, without_event
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import Actor, EventStatus, EventType
from forewarned.core.transitions import Activated, Approved, Canceled, ResourceAdded
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Store, Transaction
from forewarned.service.records import Binding, EventRecord, PageContent, Place
from tests.builders import (
    HOUR,
    MINUTE,
    NOON,
    A,
    B,
    C,
    a_binding,
    a_resource,
    a_scope,
    an_event,
    event_id,
)
from tests.storage.store_calls import cache, keep, load, save, save_in

SCOPE1 = ScopeId("scope1")
SCOPE2 = ScopeId("scope2")
D = event_id(0xD)


async def bind(store: Store, binding: Binding) -> None:
    await store.transact(lambda tx: tx.bind(binding))


async def keep_three_events(store: Store) -> None:
    """A is canceled and B started, both in scope1; C is scheduled in scope2."""
    scope = a_scope(
        an_event(A, resources=["vm1"]),
        an_event(B, status=EventStatus.STARTED, type=EventType.FREEZE, resources=["vm1", "vm2"]),
    )
    await keep(store, scope, a_scope(an_event(C, resources=["vm3"]), id="scope2"))
    over = replace(scope.events[A], status=EventStatus.CANCELED)
    fact = Canceled(scope_id=SCOPE1, at=NOON, event=over, reason="not today")
    await save(store, without_event(scope, A), fact)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [A, B, C]),
        ({"statuses": frozenset({EventStatus.CANCELED})}, [A]),
        ({"statuses": frozenset({EventStatus.STARTED, EventStatus.SCHEDULED})}, [B, C]),
        ({"statuses": frozenset()}, []),
        ({"scope_id": SCOPE1}, [A, B]),
        ({"resource": ResourceName("VM2")}, [B]),
        ({"resource": ResourceName("vm")}, []),
        ({"type": EventType.REBOOT}, [A, C]),
        ({"type": EventType.REBOOT, "scope_id": SCOPE2}, [C]),
        ({"limit": 2}, [B, C]),
        ({"limit": 0}, []),
    ],
)
async def test_events_are_listed_oldest_first_and_the_newest_where_there_are_too_many(
    store: Store, wanted: dict[str, Any], found: list[EventId]
) -> None:
    await keep_three_events(store)

    records = await store.read(lambda s: s.events(EventFilter(**wanted)))

    assert [record.event.id for record in records] == found


async def test_an_event_is_found_open_or_over_or_not_at_all(store: Store) -> None:
    await keep_three_events(store)

    over, is_open, unknown = await store.read(
        lambda s: (s.event(A), s.event(C), s.event(event_id(9)))
    )

    assert over is not None
    assert is_open is not None
    assert (over.scope_id, over.ended_at) == ("scope1", NOON)
    assert (is_open.scope_id, is_open.ended_at) == ("scope2", None)
    assert unknown is None


async def test_a_work_finds_an_event_it_has_saved_as_it_is_found_later(store: Store) -> None:
    """I10. One that it opened, one that it moved and one that it ended."""
    await keep(store, a_scope(an_event(A), an_event(B)))
    before = await load(store)
    over = replace(before.events[A], status=EventStatus.CANCELED)
    fact = Canceled(scope_id=SCOPE1, at=NOON + MINUTE, event=over, reason="not today")
    started = replace(before.events[B], status=EventStatus.STARTED, not_before=None)
    opened = an_event(C, description="Host maintenance", announced=False)
    scope = with_event(with_event(without_event(before, A), started), opened)

    def decision(tx: Transaction) -> list[EventRecord | None]:
        save_in(tx, scope, fact)
        return [tx.event(event_id) for event_id in (A, B, C)]

    within, _ = await store.transact(decision)

    later = await store.read(lambda s: [s.event(event_id) for event_id in (A, B, C)])
    assert within == later
    assert [found.event.status for found in within if found is not None] == [
        EventStatus.CANCELED,
        EventStatus.STARTED,
        EventStatus.SCHEDULED,
    ]


async def test_closed_names_events_of_that_scope_which_are_over(store: Store) -> None:
    """I12, I13"""
    await keep_three_events(store)
    asked = [A, B, C, event_id(9)]

    here, elsewhere, none = await store.read(
        lambda s: (s.closed(SCOPE1, asked), s.closed(SCOPE2, asked), s.closed(SCOPE1, []))
    )

    assert here == {A}
    assert elsewhere == none == frozenset()


async def test_history_tells_which_events_something_has_happened_to(store: Store) -> None:
    await keep_three_events(store)
    await save(store, await load(store, "scope2"), Activated(scope_id=SCOPE2, at=NOON))
    asked = [A, C, event_id(9)]

    over, active, nothing, none = await store.read(
        lambda s: (
            s.recorded("canceled", asked),
            s.recorded("activated", asked),
            s.recorded("canceled", [B, C]),
            s.recorded("canceled", []),
        )
    )

    assert over == {A}
    assert active == nothing == none == frozenset()


async def test_a_census_counts_scopes_and_what_is_open(store: Store) -> None:
    await keep_three_events(store)

    found = await store.read(lambda snapshot: snapshot.census())

    assert found.scopes == 2
    assert dict(found.events) == {
        (EventType.FREEZE, EventStatus.STARTED): 1,
        (EventType.REBOOT, EventStatus.SCHEDULED): 1,
    }


async def test_started_events_are_found_for_the_actuators(store: Store) -> None:
    await keep_three_events(store)

    records = await store.read(lambda s: s.started())

    assert [(record.scope_id, record.event.id) for record in records] == [("scope1", B)]


async def test_the_scopes_of_a_maintenance_are_those_with_open_events_of_it(store: Store) -> None:
    """I16"""
    first = a_scope(an_event(A, resources=["vm1"], maintenance="work"), id="z")
    await keep(
        store,
        first,
        a_scope(
            an_event(B, resources=["vm2"], maintenance="work"),
            an_event(C, resources=["vm2"], maintenance="work"),
            id="a",
        ),
        a_scope(an_event(event_id(4), resources=["vm3"], maintenance="other"), id="b"),
    )
    work = MaintenanceId("work")
    together = await store.read(lambda s: s.scopes_of_work(work))
    over = replace(first.events[A], status=EventStatus.CANCELED)

    fact = Canceled(scope_id=first.id, at=NOON, event=over, reason="")
    await save(store, without_event(first, A), fact)

    assert together == ["a", "z"]
    assert await store.read(lambda s: s.scopes_of_work(work)) == ["a"]


async def test_the_scopes_on_a_host_are_those_with_a_vm_there(store: Store) -> None:
    on_one, on_two = (a_resource(f"vm{n}", host=f"host{n}") for n in (1, 2))
    await keep(
        store,
        a_scope(id="b", resources=[on_one, on_two]),
        a_scope(id="a", resources=[a_resource("vm3", host="host1")]),
    )

    one, two, none = await store.read(
        lambda s: [s.scopes_on(HostName(host)) for host in ("host1", "host2", "HOST1")]
    )

    assert (one, two, none) == (["a", "b"], ["b"], [])
    assert await store.read(lambda s: s.hosts()) == ["host1", "host2"]


async def test_scopes_come_due_at_their_wake_and_the_longest_due_first(
    store: Store, clock: VirtualClock
) -> None:
    """I20"""
    await keep(
        store,
        a_scope(an_event(A, not_before=NOON + MINUTE)),
        a_scope(an_event(B, not_before=NOON, resources=["vm2"]), id="scope2"),
        a_scope(an_event(C, not_before=NOON + HOUR, resources=["vm3"]), id="scope3"),
        a_scope(id="asleep", active=False, resources=[]),
    )

    at_noon, _ = await store.transact(lambda tx: tx.claim_due(9))
    await clock.step(MINUTE)
    later, _ = await store.transact(lambda tx: tx.claim_due(9))
    one, _ = await store.transact(lambda tx: tx.claim_due(1))

    assert at_noon == [SCOPE2]
    assert later == [SCOPE2, SCOPE1]
    assert one == [SCOPE2]


async def test_the_next_wake_is_the_earliest_of_all_or_none(store: Store) -> None:
    assert await store.read(lambda s: s.next_wake()) is None

    await keep(
        store,
        a_scope(an_event(A, not_before=NOON + HOUR)),
        a_scope(last_read_at=NOON - 23 * HOUR - MINUTE, id="scope2", resources=[]),
    )

    assert await store.read(lambda s: s.next_wake()) == NOON + 59 * MINUTE


async def keep_history(store: Store) -> None:
    """Newest first: 4 and 3 of scope2, 2 and 1 of scope1."""
    event = an_event(A, type=EventType.FREEZE, resources=["vm1"])
    scope = a_scope(event)
    other = a_scope(id="scope2", resources=[])
    await keep(store, scope, other)
    await save(store, scope, Activated(scope_id=SCOPE1, at=NOON))
    await save(
        store,
        scope,
        Approved(scope_id=SCOPE1, at=NOON, event=event),
        by=Actor(name="vm:vm1", address="10.0.0.1"),
    )
    added = (ResourceAdded(scope_id=SCOPE2, at=NOON, resource=ResourceName(n)) for n in ("x", "y"))
    await save(store, other, *added)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [4, 3, 2, 1]),
        ({"scope_id": SCOPE2}, [4, 3]),
        ({"resource": ResourceName("VM1")}, [2]),
        ({"event_id": A}, [2]),
        ({"event_id": B}, []),
        ({"type": EventType.FREEZE}, [2]),
        ({"actor": "operator"}, [4, 3, 1]),
        ({"before_id": 3}, [2, 1]),
        ({"before_id": 4, "limit": 2}, [3, 2]),
        ({"limit": 0}, []),
    ],
)
async def test_history_is_listed_newest_first(
    store: Store, wanted: dict[str, Any], found: list[int]
) -> None:
    await keep_history(store)

    rows = await store.read(lambda s: s.history(HistoryFilter(**wanted)))

    assert [row.id for row in rows] == found


async def test_notes_are_kept_and_replaced(store: Store) -> None:
    await store.transact(lambda tx: tx.put_note("fleet", "one"))
    await store.transact(lambda tx: tx.put_note("fleet", "two"))

    assert await store.read(lambda s: (s.note("fleet"), s.note("none"))) == ("two", None)


async def test_scopes_come_in_order_of_creation(store: Store) -> None:
    await keep(store, *(a_scope(id=id, resources=[]) for id in "zax"))

    assert [saved.scope.id for saved in await cache(store)] == [*"zax"]


async def test_scopes_can_be_gone_through_while_they_are_changed(store: Store) -> None:
    await keep(store, a_scope(), a_scope(id="scope2", resources=[]))

    def decision(tx: Transaction) -> None:
        for saved in tx.scopes():
            tx.create(a_scope(id=f"{saved.scope.id}-copy", resources=[]))

    await store.transact(decision)

    assert len(await cache(store)) == 4


async def test_a_fleet_of_many_scopes_comes_whole_and_in_order(store: Store) -> None:
    names = [f"scope{number}" for number in range(450)]

    def bind(tx: Transaction, names: Sequence[str]) -> None:
        for id in names:
            address = f"10.0.{id.removeprefix('scope')}.1"
            tx.bind(a_binding(f"vm-of-{id}", scope_id=id, address=address))

    # Some at a time: all at once takes a busy machine longer than a transaction may.
    for begin in range(0, len(names), 50):
        some = names[begin : begin + 50]
        await keep(store, *(a_scope(id=id, resources=[a_resource(f"vm-of-{id}")]) for id in some))
        await store.transact(partial(bind, names=some))

    assert [saved.scope.id for saved in await cache(store)] == names
    bindings = await store.read(lambda s: list(s.bindings()))
    assert [binding.scope_id for binding in bindings] == names
    places = await store.read(lambda s: list(s.places()))
    assert sorted(places) == sorted(map(Place.of, bindings))


async def test_pages_show_of_every_scope_what_its_vms_read(store: Store) -> None:
    """I8, I25"""
    await keep(
        store,
        a_scope(an_event(A), an_event(B, announced=False), incarnation=7),
        a_scope(an_event(C, resources=["vm2"]), id="scope2", active=False),
        a_scope(id="scope3", resources=[]),
    )
    over = a_scope(an_event(D, resources=["vm4"]), id="scope4")
    await keep(store, over)
    canceled = replace(over.events[D], status=EventStatus.CANCELED)
    fact = Canceled(scope_id=over.id, at=NOON, event=canceled, reason="not today")
    await save(store, without_event(over, D), fact)

    pages = await store.read(lambda s: list(s.pages()))

    assert pages == list(map(PageContent.of, await cache(store)))
    assert [[event.id for event in page.document.events] for page in pages] == [[A], [C], [], []]


async def test_a_place_says_who_calls_from_where(store: Store) -> None:
    """I9"""
    await keep(store, a_scope(resources=map(a_resource, ["vm1", "vm2", "vm3"])))
    await store.transact(lambda tx: tx.bind(a_binding("vm1", address="10.0.0.1")))
    await store.transact(lambda tx: tx.bind(a_binding("vm2", address="")))

    places = await store.read(lambda s: list(s.places()))

    assert sorted(places) == [("vm1", "scope1", "10.0.0.1"), ("vm2", "scope1", "")]


async def test_places_of_a_scope_are_told_together(store: Store) -> None:
    """I9"""
    odd = '\N{SNOWMAN}, "1"'
    scopes = {"scope1": ["vm1", "vm2", odd], "scope2": ["vm4"]}
    for id, names in scopes.items():
        await keep(store, a_scope(id=id, resources=map(a_resource, names)))
        for name in names:
            address = "" if name == "vm2" else f"of {name}"
            await bind(store, a_binding(name, scope_id=id, address=address))

    told = await store.read(lambda s: list(s.scope_places()))

    assert {
        part.scope_id: sorted(zip(part.names, part.addresses, strict=True)) for part in told
    } == {
        "scope1": sorted([("vm1", "of vm1"), ("vm2", ""), (odd, f"of {odd}")]),
        "scope2": [("vm4", "of vm4")],
    }


async def test_going_through_a_fleet_can_be_broken_off(store: Store) -> None:
    await keep(store, a_scope(), a_scope(id="scope2", resources=[]))

    first = await store.read(lambda s: next(s.scopes()).scope.id)
    await keep(store, a_scope(id="scope3", resources=[]))

    assert first == "scope1"
    assert await store.read(lambda s: next(s.pages()).scope_id) == "scope1"
    assert len(await cache(store)) == 3
