"""What every store tells operators at a glance, and lists the most urgent first."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from forewarned.core.change import without_event
from forewarned.core.ids import EventId, HostName, ScopeId
from forewarned.core.model import Approval, Event, EventSource, EventStatus, EventType
from forewarned.core.transitions import Canceled
from forewarned.service.attention import Attention
from forewarned.service.listings import EventFilter, SortOrder
from forewarned.service.ports import Store
from forewarned.service.records import Summary
from tests.builders import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    A,
    B,
    C,
    a_resource,
    a_scope,
    an_event,
    event_id,
)
from tests.storage.store_calls import keep, save

D, E, F, G = event_id(0xD), event_id(0xE), event_id(0xF), event_id(0x10)
URGENT = SortOrder.URGENT


async def keep_a_busy_day(store: Store) -> None:
    """A starts in a day and B in ten minutes; C is held; D has started, E too long ago; F is over.

    vm1 and vm2 are on h1 and vm3 is on h2, in two scopes that are read; two others nobody reads, of
    which one has no VMs.
    """
    first = a_scope(
        an_event(A, resources=["vm1"], not_before=NOON + DAY, source=EventSource.USER),
        an_event(B, resources=["vm2"], not_before=NOON + 10 * MINUTE),
        an_event(F, resources=["vm1"]),
        resources=[a_resource("vm1", host="h1"), a_resource("vm2", host="h1")],
    )
    approval = Approval(by="vm:vm3", at=NOON)
    started = EventStatus.STARTED
    second = a_scope(
        an_event(C, resources=["vm3"], not_before=NOON + HOUR, approval=approval),
        an_event(D, resources=["vm3"], status=started, created_at=NOON - 2 * MINUTE),
        an_event(E, resources=["vm3"], status=started, created_at=NOON - DAY),
        id="scope2",
        resources=[a_resource("vm3", host="h2")],
    )
    unread = a_scope(id="scope3", resources=[a_resource("vm4", host="h3")], active=False)
    empty = a_scope(id="scope4", resources=[], active=False)
    await keep(store, first, second, unread, empty)
    over = replace(first.events[F], status=EventStatus.CANCELED)
    fact = Canceled(scope_id=ScopeId("scope1"), at=NOON, event=over, reason="not today")
    await save(store, without_event(first, F), fact)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [B, C, A, E, D, F]),
        ({"limit": 2}, [B, C]),
        ({"attention": Attention.SOON}, [B]),
        ({"attention": Attention.HELD}, [C]),
        ({"attention": Attention.OVERDUE}, [E]),
        ({"source": EventSource.USER}, [A]),
        ({"host": HostName("h1")}, [B, A, F]),
        ({"host": HostName("h2"), "attention": Attention.OVERDUE}, [E]),
        ({"host": HostName("h3")}, []),
        ({"type": EventType.FREEZE}, []),
    ],
)
async def test_the_next_to_start_comes_first_and_filters_narrow(
    store: Store, wanted: dict[str, Any], found: list[EventId]
) -> None:
    await keep_a_busy_day(store)

    records = await store.read(lambda s: s.events(EventFilter(order=URGENT, **wanted)))

    assert [record.event.id for record in records] == found


async def test_attention_begins_at_its_limits(store: Store) -> None:
    """Soon: fifteen minutes ahead. Overdue: five minutes after the duration, or after an hour."""
    approval = Approval(by="vm:vm1", at=NOON)
    expected = {
        an_event(A, not_before=NOON + 15 * MINUTE): {Attention.SOON},
        an_event(B, not_before=NOON + 15 * MINUTE + SECOND): set(),
        an_event(C, not_before=NOON + MINUTE, approval=approval): {Attention.SOON, Attention.HELD},
        _started(D, NOON - 9 * MINUTE, duration=4 * MINUTE): set(),
        _started(E, NOON - 10 * MINUTE, duration=4 * MINUTE): {Attention.OVERDUE},
        _started(F, NOON - HOUR - 5 * MINUTE): set(),
        _started(G, NOON - HOUR - 6 * MINUTE): {Attention.OVERDUE},
    }
    await keep(store, a_scope(*expected))

    for attention in Attention:
        wanting = {event.id for event, kinds in expected.items() if attention in kinds}
        assert await _found(store, attention) == wanting


async def _found(store: Store, attention: Attention) -> set[EventId]:
    records = await store.read(lambda s: s.events(EventFilter(attention=attention)))
    return {record.event.id for record in records}


def _started(id: EventId, at: datetime, *, duration: timedelta | None = None) -> Event:
    event = an_event(id, status=EventStatus.STARTED, duration=duration)
    return replace(event, created_at=at, started_at=at)


async def test_the_summary_counts_what_wants_attention(store: Store) -> None:
    await keep_a_busy_day(store)

    summary = await store.read(lambda s: s.summary())

    assert summary == Summary(soon=1, held=1, overdue=1, hosts=2)


async def test_unread_scopes_are_those_with_vms_of_which_none_reads(store: Store) -> None:
    await keep_a_busy_day(store)

    number, unread = await store.read(lambda s: (s.count_unread_scopes(), s.unread_scope_ids()))

    assert number == 1
    assert unread == ["scope3"]


async def test_an_empty_store_has_nothing_to_attend_to(store: Store) -> None:
    summary, unread = await store.read(lambda s: (s.summary(), s.count_unread_scopes()))

    assert summary == Summary(soon=0, held=0, overdue=0, hosts=0)
    assert unread == 0
