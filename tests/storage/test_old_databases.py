"""What earlier versions wrote can be read for ever: one filled database for each schema."""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.core.change import Change, without_event
from forewarned.core.ids import HostName, MaintenanceId, ResourceName
from forewarned.core.model import (
    Approval,
    EventStatus,
    EventType,
    EvictionPolicy,
    Policy,
    Priority,
    ResourceState,
    Round,
    SetMaintenance,
    StartCause,
)
from forewarned.core.tasks import Task, TaskState
from forewarned.core.transitions import Canceled, Scheduled, Started
from forewarned.service.drains.model import Drain, DrainOrder, DrainState, Move, MoveState
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Transaction
from forewarned.service.records import Declaration, OperationRecord, Profile
from forewarned.service.subscriptions.model import (
    DeliveryFilter,
    DeliveryState,
    Filter,
    PublishedStatus,
    Rest,
    SubscriptionState,
)
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.targets import Apprise, Webhook
from forewarned.storage import SqliteStore
from forewarned.storage.sqlite.migrate import apply, migrations
from tests.builders import (
    HOUR,
    MINUTE,
    NOON,
    OPERATOR,
    A,
    B,
    C,
    a_binding,
    a_resource,
    a_scope,
    an_event,
    event_id,
)
from tests.service.subscriptions.messages import a_message, a_subscription
from tests.storage.conftest import OpenSqlite
from tests.storage.publishing_calls import leave
from tests.storage.store_calls import everything, settle_in

FILLED: Mapping[int, Path] = {
    int(file.stem): file for file in sorted(Path(__file__).parent.glob("filled/*.sql"))
}
PROFILE = Profile(
    vm_id="5c1d8a1e",
    subscription_id="sub",
    resource_group="group",
    location="westeurope",
    size="Standard_D2s_v5",
    computer_name="vm1",
    os_type="Windows",
    zone="2",
    scale_set="set",
    is_flexible=True,
    availability_set="avset",
    placement_group_id="pg",
    tags={"env": "test"},
)
EVENT = an_event(
    A,
    duration=timedelta(seconds=9, microseconds=1),
    description="a line",
    approval=Approval(by="vm:vm1", at=NOON - MINUTE),
    maintenance="work",
)
STARTED = an_event(B, type=EventType.PREEMPT, status=EventStatus.STARTED, resources=["vm2"])
SCOPE = a_scope(
    EVENT,
    STARTED,
    resources=[
        a_resource("vm1", update_domain=1, fault_domain=2, terminate_notice=5 * MINUTE),
        a_resource(
            "vm2",
            host="host2",
            priority=Priority.SPOT,
            eviction_policy=EvictionPolicy.DELETE,
            state=ResourceState.INTERRUPTED,
        ),
    ],
    policy=Policy(approves_user_reboot=True, approves_when_all_down=False),
    incarnation=4,
    last_read_at=NOON - HOUR,
    rounds=SetMaintenance(
        id=MaintenanceId("work"),
        type=EventType.REBOOT,
        duration=timedelta(seconds=9),
        description="a line",
        notice=15 * MINUTE,
        remaining=(Round(update_domain=3, event_id=C),),
    ),
)


def fill(tx: Transaction) -> None:
    settle_in(tx, SCOPE)
    tx.bind(a_binding("vm1", profile=PROFILE))
    other = a_scope(an_event(C, resources=["vm3"]), id="scope2", active=False)
    settle_in(tx, other)
    scheduled = Scheduled(scope_id=SCOPE.id, at=NOON - HOUR, event=EVENT)
    over = replace(other.events[C], status=EventStatus.CANCELED)
    canceled = Canceled(scope_id=other.id, at=NOON, event=over, reason="not today")
    tx.save(Change(scope=SCOPE, transitions=(scheduled,)), by=OPERATOR)
    tx.save(Change(scope=without_event(other, C), transitions=(canceled,)), by=OPERATOR)
    tx.put_note("fleet", "one")


def fill_declarations(tx: Transaction) -> None:
    path = "/subscriptions/Sub/resourceGroups/Group"
    tx.declare(Declaration(path=path, document='{"tags":{}}', created_at=NOON - HOUR))
    tx.declare(
        Declaration(
            path=f"{path}/providers/Microsoft.Compute/virtualMachineScaleSets/Größe",
            document="{}",
            created_at=NOON,
            revision=2,
            next_instance=5,
            is_going=True,
        )
    )
    tx.open_operation(
        OperationRecord(id="op1", path=path, action="delete", started_at=NOON, event_ids=(A, B))
    )
    failed = OperationRecord(id="op2", path=path, action="start", started_at=NOON)
    tx.open_operation(replace(failed, failure_code="Conflict", failure="no room"))
    scope = a_scope(id="Scope10/Größe", resources=[a_resource("vm4")])
    settle_in(tx, scope)
    profile = replace(PROFILE, model_revision=3, image_notice=15 * MINUTE)
    tx.bind(a_binding("vm4", scope_id=scope.id, address="10.0.0.4", profile=profile))
    tx.record("turned_away", by=OPERATOR, cause="no token")


def fill_tasks(tx: Transaction) -> None:
    moving = an_event(
        event_id(0xD), type=EventType.FREEZE, status=EventStatus.STARTED, resources=["vm5"]
    )
    scope = a_scope(moving, id="scope5", resources=[a_resource("vm5", actuator="rack1")])
    settle_in(tx, scope)
    started = Started(scope_id=scope.id, at=NOON, event=moving, cause=StartCause.APPROVED)
    tx.save(Change(scope=scope, transitions=(started,)), by=OPERATOR)
    tx.put_tasks(
        [
            Task(
                event_id=moving.id,
                vm=ResourceName("vm5"),
                scope_id=scope.id,
                type=moving.type,
                host=HostName("host1"),
                actuator="rack1",
                state=TaskState.BEGUN,
                attempt=2,
                holder="hv-a:4711",
                claimable_at=NOON + MINUTE,
                begun_at=NOON,
                before='{"host":"hv-a"}',
                after='{"host":"hv-b"}',
                error="no room",
            )
        ]
    )


def fill_drains(tx: Transaction) -> None:
    tx.put_drain(
        Drain(
            host=HostName("hv-a"),
            order=DrainOrder(type=EventType.REDEPLOY, wave=2, deadline=6 * HOUR, anyway=True),
            by="operator",
            began_at=NOON,
            state=DrainState.MOVING,
            goes=True,
            moves=(
                Move(
                    vm=ResourceName("vm5"),
                    actuator="rack1",
                    asked_at=NOON,
                    state=MoveState.MOVING,
                    reads=True,
                    wave=1,
                    possible=True,
                    target="hv-b",
                    event_id=event_id(0xD),
                    tries=2,
                    reason="no room",
                ),
                Move(
                    vm=ResourceName("vm6"),
                    actuator="rack1",
                    asked_at=NOON,
                    state=MoveState.MOVED,
                    moved_to=HostName("hv-c"),
                ),
            ),
            changed_at=NOON + MINUTE,
        )
    )


def fill_publishing(tx: Transaction) -> None:
    ops = a_subscription(
        "ops",
        target=Webhook(url="https://hooks.example/", secrets=("whsec_b", "whsec_a")),
        filter=Filter(types=frozenset({EventType.REBOOT}), vms=("web-*",)),
    )
    tx.put_subscription(ops)
    tx.put_subscription(
        a_subscription(
            "chat",
            target=Apprise(url="json://token@127.0.0.1/"),
            shape=Shape(name=ShapeName.TEMPLATE, template="{{ event.id }}"),
            state=SubscriptionState.PAUSED,
        )
    )
    message = a_message(PublishedStatus.STARTED, event=STARTED, cause="approved")
    tx.queue(message, ["chat", "ops"])
    tx.queue(a_message(PublishedStatus.STALLED, number=2, event=EVENT, vms=["vm2"]), ["ops"])
    [given_up] = tx.deliveries(DeliveryFilter(subscription="chat"))
    tx.put_delivery(
        replace(
            given_up,
            state=DeliveryState.UNDELIVERED,
            attempts=3,
            tried_at=NOON,
            due_at=None,
            given_up_at=NOON + MINUTE,
            last_error="no room",
        )
    )
    tx.note_health("ops", delivered=2, failed=1, error="500")


def fill_rests(tx: Transaction) -> None:
    rest = Rest(2, NOON + MINUTE)
    tx.note_health("ops", delivered=0, failed=0, error="", rest=rest)


def fill_addressed(tx: Transaction) -> None:
    message = a_message(PublishedStatus.COMPLETED, event=EVENT)
    # Messages 1 to 3 came before it.
    for takers in (None, None, None, '["ops"]'):
        leave(tx, message, takers)


FILLINGS: Mapping[int, Callable[[Transaction], None]] = {
    1: fill,
    2: fill_declarations,
    4: fill_tasks,
    5: fill_drains,
    7: fill_publishing,
    8: fill_rests,
    10: fill_addressed,
}
"""By the first schema that has a place for it."""


def test_there_is_a_filled_database_for_each_schema() -> None:
    assert list(FILLED) == [migration.number for migration in migrations()]


@pytest.mark.parametrize("number", FILLED)
async def test_a_filled_database_of_an_earlier_version_is_read_as_it_was_meant(
    sqlite: OpenSqlite, path: Path, memory: SqliteStore, number: int
) -> None:
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for migration in migrations()[:number]:
            apply(connection, migration)
        connection.executescript(FILLED[number].read_text())

    async with sqlite() as store, memory:
        for first, filling in FILLINGS.items():
            if first <= number:
                await memory.transact(filling)
        assert await store.read(everything) == await memory.read(everything)


async def test_scopes_of_an_earlier_version_are_found_by_how_they_begin(
    sqlite: OpenSqlite, path: Path
) -> None:
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        apply(connection, migrations()[0])
        connection.execute(
            "INSERT INTO scopes VALUES (1, 'Vmss/Größe/0', 'placement_group', 1, 1, 0, NULL, NULL,"
            " '{}', NULL)"
        )

    async with sqlite() as store:
        assert await store.read(lambda s: s.scope_ids("VMSS/GRÖSSE/")) == ["Vmss/Größe/0"]


async def test_what_happened_to_a_vm_that_was_gone_before_is_found_under_its_name(
    sqlite: OpenSqlite, path: Path
) -> None:
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for migration in migrations()[:2]:
            apply(connection, migration)
        connection.executescript(FILLED[2].read_text())
        connection.execute(
            "INSERT INTO history (at, actor, address, action, scope_id, resources, cause)"
            " VALUES (1767614400000000, 'operator', '', 'resource_removed', 'scope2', ?, '')",
            ('["GRÖSSE"]',),
        )

    async with sqlite() as store:
        gone, there = await store.read(
            lambda s: [
                s.history(HistoryFilter(resource=ResourceName(name))) for name in ("größe", "vm3")
            ]
        )

    assert [row.action for row in gone] == ["resource_removed"]
    assert [row.action for row in there] == ["canceled"]
