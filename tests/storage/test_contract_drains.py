"""Drains in every store: one for each host, read as it was written."""

from dataclasses import replace
from operator import methodcaller

from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import EventType, Resource
from forewarned.service.drains.model import (
    Drain,
    DrainOrder,
    DrainState,
    HostListing,
    Move,
    MoveState,
)
from forewarned.service.ports import Store
from tests.builders import HOUR, MINUTE, NOON, A

HV_A, HV_B = HostName("hv-a"), HostName("hv-b")
LISTING = HostListing(actuator="rack1", vms=())
DRAIN = Drain(
    host=HV_A,
    order=DrainOrder(type=EventType.REDEPLOY, notice=20 * MINUTE, deadline=HOUR),
    by="operator",
    began_at=NOON,
    changed_at=NOON,
    moves=(
        Move(vm=ResourceName("vm1"), actuator="rack1", asked_at=NOON),
        Move(
            vm=ResourceName("Größe"),
            actuator="",
            asked_at=NOON,
            state=MoveState.BLOCKED,
            event_id=A,
            reason="why",
        ),
    ),
)


async def put(store: Store, *drains: Drain) -> None:
    for drain in drains:
        await store.transact(methodcaller("put_drain", drain))


async def test_a_drain_is_read_as_it_was_written(store: Store) -> None:
    await put(store, DRAIN)

    assert await store.read(lambda snapshot: snapshot.drain(HV_A)) == DRAIN
    assert await store.read(lambda snapshot: snapshot.drain(HV_B)) is None
    locked, _ = await store.transact(lambda tx: (tx.lock_drain(HV_A), tx.lock_drain(HV_B)))
    assert locked == (DRAIN, None)


async def test_a_host_has_one_drain_the_newest(store: Store) -> None:
    other = replace(DRAIN, host=HV_B)
    newer = replace(DRAIN, state=DrainState.EMPTY, moves=(), listings=(LISTING,))

    await put(store, other, DRAIN, newer)

    assert await store.read(lambda snapshot: snapshot.drains()) == [newer, other]


async def test_a_transaction_knows_what_carries_out_the_events_of_a_vm(store: Store) -> None:
    vm = Resource(name=ResourceName("vm1"), host=HV_A, actuator="rack1")

    found, _ = await store.transact(lambda tx: tx.actuator_of(vm))

    assert found == "rack1"
