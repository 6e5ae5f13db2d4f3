"""Messages in every store: written with their transitions, and taken out in order."""

import sys
from dataclasses import replace
from functools import partial
from operator import methodcaller
from pathlib import PurePath
from types import FrameType

import pytest

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import (
    EventStatus,
    EventType,
    Policy,
    Publishing,
    StartCause,
)
from forewarned.core.rules import Rules
from forewarned.core.transitions import (
    Approved,
    Canceled,
    Completed,
    Interrupted,
    Scheduled,
    Stalled,
    Started,
)
from forewarned.service.events.approval import approve
from forewarned.service.ports import Store, Transaction
from forewarned.service.subscriptions.model import (
    PublishedStatus,
)
from tests.builders import (
    NOON,
    OPERATOR,
    SECOND,
    A,
    B,
    a_binding,
    a_profile,
    a_resource,
    a_scope,
    an_event,
)
from tests.service.subscriptions.messages import a_message, a_subscription
from tests.storage.publishing_calls import (
    EVENT,
    OPS,
    SCHEDULED,
    count,
    leave,
    listed,
    put,
    queued,
    take,
)
from tests.storage.store_calls import keep, save, save_in, settle_in

_OF_PUBLISHING = frozenset({"outbox", "fan_out", "subscriptions", "publisher", "turn", "messenger"})


async def test_i23_a_message_is_written_with_its_transition_while_there_is_a_subscription(
    store: Store,
) -> None:
    scope = a_scope()
    await keep(store, scope)
    before = await save(store, replace(scope, events={A: EVENT}), SCHEDULED)
    await put(store, OPS)
    during = await save(
        store,
        replace(scope, events={}),
        Canceled(
            scope_id=scope.id,
            at=NOON,
            event=replace(EVENT, status=EventStatus.CANCELED),
            reason="not today",
        ),
    )
    [message] = await take(store)
    await store.transact(methodcaller("remove_subscription", "ops"))
    after = await save(
        store,
        replace(scope, events={B: an_event(B)}),
        Scheduled(scope_id=scope.id, at=NOON, event=an_event(B)),
    )

    await put(store, OPS)
    assert (message.status, message.cause) == (PublishedStatus.CANCELED, "not today")
    assert await take(store) == []
    assert [each.is_for_publisher for each in (before, during, after)] == [False, True, False]


async def test_without_a_subscription_an_approval_calls_nothing_of_publishing(
    store: Store,
) -> None:
    later = NOON + SECOND
    await keep(store, a_scope(an_event(A, not_before=later), an_event(B, not_before=later)))

    off = await called_to_approve(store, A)
    await put(store, OPS)
    on = await called_to_approve(store, B)

    assert {name for name in off if name in _OF_PUBLISHING} == set()
    assert {name for name in on if name in _OF_PUBLISHING} == {"outbox"}


async def called_to_approve(store: Store, event_id: EventId) -> set[str]:
    """The modules whose functions it takes to decide and to save an approval."""
    called: set[str] = set()

    def note(frame: FrameType, what: str, _: object) -> None:
        if what == "call":
            called.add(PurePath(frame.f_code.co_filename).stem)

    def decision(tx: Transaction) -> None:
        sys.setprofile(note)
        try:
            approve(tx, tx.load(ScopeId("scope1")), [event_id], rules=Rules(), by=OPERATOR)
        finally:
            sys.setprofile(None)

    await store.transact(decision)
    return called


async def test_i23_a_message_is_not_written_without_its_transition(store: Store) -> None:
    scope = a_scope()
    await put(store, OPS)
    await keep(store, scope)

    def fails(tx: Transaction) -> None:
        save_in(tx, replace(scope, events={A: EVENT}), SCHEDULED)
        raise ValueError

    with pytest.raises(ValueError):
        await store.transact(fails)

    assert await take(store) == []


async def test_a_message_tells_all_of_its_transition(store: Store) -> None:
    policy = Policy(publishing=Publishing(enabled=True, api_version="2020-07-01"))
    event = an_event(A, resources=["vm1", "vm2"], description="a line", duration=9 * SECOND)
    started = replace(event, status=EventStatus.STARTED, not_before=None)
    scope = a_scope(event, policy=policy)
    await put(store, OPS)
    await keep(store, scope)
    await store.transact(methodcaller("bind", a_binding("vm2")))

    facts = [
        Approved(scope_id=scope.id, at=NOON, event=event),
        Started(scope_id=scope.id, at=NOON, event=started, cause=StartCause.APPROVED),
        Interrupted(scope_id=scope.id, at=NOON, event=started, vms=(ResourceName("vm1"),)),
        Stalled(
            scope_id=scope.id, at=NOON, event=started, vms=(ResourceName("vm2"),), reason="no room"
        ),
    ]
    await save(store, replace(scope, events={A: started}), *facts)

    approved, began, stalled = await take(store)
    expected = a_message(PublishedStatus.APPROVED, event=event, publishing=policy.publishing)
    assert approved == expected._replace(
        number=approved.number,
        resource_id=began.resource_id,
        location="westeurope",
    )
    assert began.resource_id.endswith("/providers/Microsoft.Compute/virtualMachines/vm2")
    assert (began.status, began.event, began.cause) == (
        PublishedStatus.STARTED,
        started,
        "approved",
    )
    assert (stalled.vms, stalled.cause) == (("vm2",), "no room")
    assert approved.number < began.number < stalled.number
    assert len({approved.id, began.id, stalled.id}) == 3
    assert await take(store) == []


async def test_a_message_of_a_vm_that_goes_with_it_says_where_that_vm_was(store: Store) -> None:
    event = an_event(A, type=EventType.TERMINATE, status=EventStatus.STARTED)
    scope = a_scope(event)
    profile = replace(a_profile(), scale_set="web")
    await put(store, OPS)

    def settle(tx: Transaction) -> None:
        settle_in(tx, scope)
        tx.bind(a_binding(profile=profile))

    await store.transact(settle)
    over = replace(event, status=EventStatus.COMPLETED)

    await save(
        store,
        replace(scope, incarnation=2),
        Started(scope_id=scope.id, at=NOON, event=event, cause=StartCause.APPROVED),
    )
    await save(
        store,
        replace(scope, events={}, resources={}),
        Completed(scope_id=scope.id, at=NOON, event=over),
    )

    messages = await take(store)
    assert len(messages) == 2
    for message in messages:
        assert message.resource_id.endswith("/virtualMachineScaleSets/web")
        assert message.location == "westeurope"


async def test_a_message_in_the_outbox_says_where_its_vm_was_if_that_is_removed(
    store: Store,
) -> None:
    scopes = [a_scope(EVENT), a_scope(an_event(B, resources=["vm2"]), id="scope2")]
    await put(store, OPS)
    await keep(store, *scopes)
    await store.transact(methodcaller("bind", a_binding("vm1")))
    other = a_binding("vm2", scope_id="scope2", address="10.0.0.2")
    await store.transact(methodcaller("bind", other))

    def approve_each(tx: Transaction) -> None:
        for scope in scopes:
            [event] = scope.events.values()
            fact = Approved(scope_id=scope.id, at=NOON, event=event)
            save_in(tx, replace(scope, incarnation=2), fact)

    def remove(tx: Transaction) -> None:
        over = replace(EVENT, status=EventStatus.CANCELED)
        fact = Canceled(scope_id=scopes[0].id, at=NOON, event=over, reason="")
        save_in(tx, replace(scopes[0], events={}, resources={}, incarnation=3), fact)

    await store.transact(approve_each)
    await store.transact(remove)

    messages = await take(store)
    names = [message.resource_id.rpartition("/")[2] for message in messages]
    assert names == ["vm1", "vm2", "vm1"]
    assert [message.location for message in messages] == ["westeurope"] * 3


async def test_messages_of_a_scope_are_taken_in_the_order_of_its_commits(store: Store) -> None:
    scope = a_scope(EVENT)
    await put(store, OPS)
    await keep(store, scope)
    for number in range(5):
        moved = replace(scope, incarnation=2 + number)
        await save(
            store, moved, Approved(scope_id=scope.id, at=NOON + number * SECOND, event=EVENT)
        )

    first, then = await take(store, limit=3), await take(store)

    assert [message.at for message in (*first, *then)] == [NOON + n * SECOND for n in range(5)]
    assert len(first) == 3


async def test_messages_that_say_who_takes_them_are_queued_between_the_others_in_order(
    store: Store,
) -> None:
    """As after an upgrade, or where a store was copied that several nodes had."""
    await put(store, OPS)
    await keep(store, a_scope(EVENT))

    def write(tx: Transaction) -> None:
        for number, takers in enumerate([None, None, '["ops"]', '["ops"]', None, '["ops"]']):
            leave(tx, a_message(event=EVENT)._replace(at=NOON + number * SECOND), takers)

    await store.transact(write)
    steps = [await take_step(store) for _ in range(4)]
    found = await listed(store)

    assert steps == [(2, True), (0, True), (1, True), (0, False)]
    assert [each.message.at for each in found] == [NOON + n * SECOND for n in range(6)]
    assert [each.due_at is None for each in found] == [False, *[True] * 5]


async def take_step(store: Store) -> tuple[int, bool]:
    """How many messages it is for the publisher to compare, and whether there are more."""

    def decision(tx: Transaction) -> tuple[int, bool]:
        taken = tx.take_outbox(limit=10)
        for message in taken.unaddressed:
            tx.queue(message, ["ops"])
        return len(taken.unaddressed), taken.leaves_more

    step, _ = await store.transact(decision)
    return step


async def test_a_message_is_not_for_another_subscription_of_the_same_name(store: Store) -> None:
    await put(store, OPS, a_subscription("chat"))
    await keep(store, a_scope(EVENT))
    message = a_message(event=EVENT)
    for takers in ('["ops"]', '["chat","ops"]', '["chat"]'):
        await store.transact(partial(leave, message=message, takers=takers))

    health = await store.read(lambda snapshot: snapshot.subscription_health(now=NOON))
    assert [health[name].pending for name in ("chat", "ops")] == [2, 2]

    await store.transact(methodcaller("remove_subscription", "ops"))
    await put(store, OPS)

    found = await queued(store)
    assert [(each.subscription, each.message.number) for each in found] == [
        ("chat", 2),
        ("chat", 3),
    ]
    assert await count(store, "messages") == 2


async def test_vms_of_a_set_are_published_with_the_set(store: Store) -> None:
    scope = a_scope(resources=[a_resource("vm1")])
    await put(store, OPS)
    await keep(store, scope)
    profile = replace(a_profile(), availability_set="web")
    await store.transact(methodcaller("bind", a_binding(profile=profile)))

    def schedule(tx: Transaction) -> None:
        loaded = tx.load(scope.id)
        save_in(tx, replace(loaded, events={A: EVENT}), SCHEDULED)

    await store.transact(schedule)

    [message] = await take(store)
    assert message.resource_id.endswith("/availabilitySets/web")
    assert message.actor == OPERATOR.name
