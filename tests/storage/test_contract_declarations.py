"""What every store promises about declarations, operations, and names asked for by their start."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.ids import ResourceName
from forewarned.core.model import EventType
from forewarned.core.rules import Rules
from forewarned.core.transitions import Activated
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Store, Transaction
from forewarned.service.records import Declaration, GroupPlace, OperationRecord
from forewarned.storage import SqliteStore
from forewarned.storage.diff import fold
from tests.builders import (
    DAY,
    MINUTE,
    NOON,
    OPERATOR,
    A,
    B,
    a_binding,
    a_profile,
    a_resource,
    a_scope,
)
from tests.storage.conftest import OpenSqlite
from tests.storage.store_calls import everything, keep, save
from tests.storage.strategies import declared, odd, operations
from tests.storage.test_contract_bindings import bind

GROUP = "/subscriptions/Sub/resourceGroups/Web"
SET = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/Front"


class MindChangedError(Exception):
    pass


def a_declaration(path: str = SET, *, document: str = "{}", revision: int = 0) -> Declaration:
    return Declaration(path=path, document=document, created_at=NOON, revision=revision)


def an_operation(id: str = "op1", *, age: timedelta = timedelta()) -> OperationRecord:
    return OperationRecord(id=id, path=SET, action="restart", started_at=NOON - age)


async def declare(store: Store, *declarations: Declaration) -> None:
    def decision(tx: Transaction) -> None:
        for each in declarations:
            tx.declare(each)

    await store.transact(decision)


async def open_(store: Store, *opened: OperationRecord) -> None:
    def decision(tx: Transaction) -> None:
        for each in opened:
            tx.open_operation(each)

    await store.transact(decision)


async def paths(store: Store, prefix: str = "") -> list[str]:
    return [each.path for each in await store.read(lambda s: list(s.declarations(prefix)))]


def in_any_store(check: Callable[[Store], Awaitable[None]]) -> None:
    """For what hypothesis tries often: a store of each kind for each try."""

    async def run() -> None:
        clock = VirtualClock(NOON, speed=0)
        next_wake = partial(lifecycle.next_wake, rules=Rules())
        async with SqliteStore(None, clock, next_wake=next_wake) as store:
            await check(store)

    asyncio.run(run())


# --- declarations --------------------------------------------------------------------------------


async def test_a_declaration_is_found_as_it_was_made_in_any_letter_case(store: Store) -> None:
    made = Declaration(
        path=SET,
        document='{"sku": "é"}',
        created_at=NOON + timedelta(microseconds=1),
        revision=3,
        next_instance=2**40,
        is_going=True,
    )

    await declare(store, made)

    assert await store.read(lambda s: s.declaration(SET.upper())) == made
    assert await store.read(lambda s: s.declaration(SET + "x")) is None
    assert await store.read(lambda s: s.declaration(GROUP)) is None


async def test_a_declaration_takes_the_place_of_the_former_whose_spelling_stays(
    store: Store,
) -> None:
    await declare(store, a_declaration(document="old"))
    later = replace(
        a_declaration(SET.lower(), document="new", revision=2),
        created_at=NOON + MINUTE,
        next_instance=5,
        is_going=True,
    )

    await declare(store, later)

    found = await store.read(lambda s: list(s.declarations("")))
    assert found == [replace(later, path=SET)]


async def test_what_is_withdrawn_is_gone_and_may_come_back_in_another_spelling(
    store: Store,
) -> None:
    await declare(store, a_declaration(), a_declaration(GROUP))

    await store.transact(lambda tx: tx.withdraw(SET.upper()))
    gone = await paths(store)
    await declare(store, a_declaration(SET.lower()))

    assert gone == [GROUP]
    assert await paths(store) == [GROUP, SET.lower()]


async def test_withdrawing_what_nobody_declared_changes_nothing(store: Store) -> None:
    await declare(store, a_declaration())

    await store.transact(lambda tx: tx.withdraw(GROUP))

    assert await paths(store) == [SET]


async def test_a_work_sees_what_it_has_declared_itself(store: Store) -> None:
    def decision(tx: Transaction) -> list[object]:
        tx.declare(a_declaration())
        tx.open_operation(an_operation())
        seen: list[object] = [tx.declaration(SET), tx.operation("op1"), *tx.declarations(GROUP)]
        tx.withdraw(SET)
        return [*seen, tx.declaration(SET)]

    seen, _ = await store.transact(decision)

    assert seen == [a_declaration(), an_operation(), a_declaration(), None]


async def test_a_work_may_withdraw_what_it_goes_through_however_much_there_is(
    store: Store,
) -> None:
    many = [f"{GROUP}/providers/x/{number:04}" for number in range(1050)]
    # Some at a time: all at once takes a busy machine longer than a transaction may.
    for begin in range(0, len(many), 150):
        await declare(store, *map(a_declaration, many[begin : begin + 150]))

    def clear(tx: Transaction) -> list[str]:
        seen = []
        for each in tx.declarations(GROUP):
            seen.append(each.path)
            tx.withdraw(each.path)
        return seen

    seen, _ = await store.transact(clear)

    assert seen == many
    assert await paths(store) == []


@given(st.lists(declared, max_size=8), odd)
@example([a_declaration("a%b"), a_declaration("aXb"), a_declaration("A_B")], "A%")
@example([a_declaration("straße"), a_declaration("STRASSE/x"), a_declaration("stras")], "Strass")
@example([a_declaration("a\U0010ffff\U0010ffff"), a_declaration("b")], "A\U0010ffff")
@settings(max_examples=60)
def test_declarations_are_those_whose_paths_begin_so_in_order(
    made: list[Declaration], prefix: str
) -> None:
    expected: dict[str, Declaration] = {}
    for each in made:
        first = expected.get(fold(each.path), each)
        expected[fold(each.path)] = replace(each, path=first.path)

    async def check(store: Store) -> None:
        await declare(store, *made)
        found = await store.read(lambda s: list(s.declarations(prefix)))
        assert found == [expected[p] for p in sorted(expected) if p.startswith(fold(prefix))]

    in_any_store(check)


# --- operations ----------------------------------------------------------------------------------


async def test_an_operation_is_found_by_its_id(store: Store) -> None:
    failed = replace(an_operation(), event_ids=(B, A), failure_code="Conflict", failure="no room")

    await open_(store, failed, an_operation("op2"))

    assert await store.read(lambda s: s.operation("op1")) == failed
    assert await store.read(lambda s: s.operation("op2")) == an_operation("op2")
    assert await store.read(lambda s: s.operation("OP1")) is None


async def test_operations_are_forgotten_after_a_week_when_another_is_opened(
    store: Store, clock: VirtualClock
) -> None:
    await open_(store, an_operation("old", age=MINUTE), an_operation("young"))

    await clock.step(7 * DAY)
    untouched = await store.read(lambda s: s.operation("old"))
    await open_(store, an_operation("new"))

    assert untouched is not None
    assert await store.read(lambda s: s.operation("old")) is None
    assert await store.read(lambda s: s.operation("young")) == an_operation("young")
    assert await store.read(lambda s: s.operation("new")) == an_operation("new")


async def test_no_two_operations_have_one_id(store: Store) -> None:
    await open_(store, an_operation())

    with pytest.raises(ValueError, match="'op1' exists"):
        await open_(store, replace(an_operation(), action="delete"))

    assert await store.read(lambda s: s.operation("op1")) == an_operation()


# --- history of what concerns no scope -----------------------------------------------------------


async def test_what_concerns_no_scope_is_one_row_of_history_among_the_others(
    store: Store,
) -> None:
    """I29, S12"""
    await keep(store, a_scope())
    fact = Activated(scope_id=a_scope().id, at=NOON)

    await save(store, a_scope(), fact)
    _, commit = await store.transact(
        lambda tx: tx.record("turned_away", by=OPERATOR, cause="the token has expired")
    )
    await save(store, a_scope(), fact)

    rows = await store.read(lambda s: s.history(HistoryFilter()))
    assert [row.id for row in rows] == [3, 2, 1]
    row = rows[1]
    assert (row.at, row.actor, row.address) == (NOON, OPERATOR.name, OPERATOR.address)
    assert (row.action, row.cause) == ("turned_away", "the token has expired")
    assert (row.scope_id, row.event_id, row.event_type, row.resources) == ("", None, None, ())
    assert (commit.scopes, commit.transitions) == ((), ())


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (HistoryFilter(actor=OPERATOR.name), True),
        (HistoryFilter(scope_id=a_scope().id), False),
        (HistoryFilter(resource=ResourceName("vm1")), False),
        (HistoryFilter(event_id=A), False),
        (HistoryFilter(type=EventType.REBOOT), False),
        (HistoryFilter(before_id=1), False),
    ],
)
async def test_a_row_of_no_scope_is_listed_where_it_belongs_only(
    store: Store, wanted: HistoryFilter, *, found: bool
) -> None:
    await store.transact(lambda tx: tx.record("turned_away", by=OPERATOR, cause=""))

    assert bool(await store.read(lambda s: s.history(wanted))) is found


# --- who and what is where -----------------------------------------------------------------------


async def test_the_holder_of_an_address_is_the_vm_bound_to_it(store: Store) -> None:
    await keep(store, a_scope(resources=[a_resource("Vm1"), a_resource("vm2")]))
    await store.transact(lambda tx: tx.bind(a_binding("Vm1", address="10.0.0.1")))
    await store.transact(lambda tx: tx.bind(a_binding("vm2", address="")))

    assert await store.read(lambda s: s.holder("10.0.0.1")) == "Vm1"
    assert await store.read(lambda s: s.holder("10.0.0.2")) is None
    assert await store.read(lambda s: s.holder("")) is None


async def test_an_address_whose_vm_is_gone_or_moved_has_no_holder(store: Store) -> None:
    await keep(store, a_scope(resources=[a_resource("vm1"), a_resource("vm2")]))
    await store.transact(lambda tx: tx.bind(a_binding("vm1", address="10.0.0.1")))
    await store.transact(lambda tx: tx.bind(a_binding("vm2", address="10.0.0.2")))

    await store.transact(lambda tx: tx.bind(a_binding("vm1", address="10.0.0.9")))
    await save(store, a_scope(resources=[a_resource("vm1")]))

    holders = await store.read(lambda s: [s.holder(f"10.0.0.{n}") for n in (1, 2, 9)])
    assert holders == [None, None, "vm1"]


@given(st.lists(odd, max_size=8, unique=True), odd)
@example(["vmss/Web/1", "VMSS/web/0", "vmss/web2/0", "vmss/we%/0"], "vmss/WEB/")
@settings(max_examples=60)
def test_scope_ids_are_those_that_begin_so_the_oldest_first(ids: list[str], prefix: str) -> None:
    async def check(store: Store) -> None:
        await keep(store, *(a_scope(id=each, resources=[]) for each in ids))
        found = await store.read(lambda s: s.scope_ids(prefix))
        assert found == [each for each in ids if fold(each).startswith(fold(prefix))]

    in_any_store(check)


async def test_a_work_sees_the_ids_of_scopes_it_has_created_itself(store: Store) -> None:
    def decision(tx: Transaction) -> list[str]:
        tx.create(a_scope(id="vmss/web/0", resources=[]))
        return [*tx.scope_ids("VMSS/Web")]

    seen, _ = await store.transact(decision)

    assert seen == ["vmss/web/0"]


async def test_resource_groups_are_those_of_bound_vms_each_once_by_name(store: Store) -> None:
    places = [
        GroupPlace("sub", "web", "westeurope"),
        GroupPlace("sub", "Web", "WestEurope"),
        GroupPlace("sub", "web", "northeurope"),
        GroupPlace("sub", "API", "westeurope"),
        GroupPlace("other", "web", "westeurope"),
        GroupPlace("sub", "Äpfel % \"'", "westeurope"),
    ]
    vms = [a_resource(f"vm{number}") for number in range(len(places))]
    await keep(store, a_scope(resources=[*vms, a_resource("unbound")]))
    for vm, place in zip(vms, places, strict=True):
        profile = replace(
            a_profile(vm.name, location=place.location),
            subscription_id=place.subscription_id,
            resource_group=place.name,
        )
        await bind(store, a_binding(vm.name, address="", profile=profile))

    assert await store.read(lambda s: s.resource_groups()) == [
        GroupPlace("sub", "API", "westeurope"),
        GroupPlace("other", "web", "westeurope"),
        GroupPlace("sub", "web", "northeurope"),
        GroupPlace("sub", "Web", "WestEurope"),
        GroupPlace("sub", "Äpfel % \"'", "westeurope"),
    ]


async def test_a_vm_keeps_its_model_and_that_models_notice(store: Store) -> None:
    await keep(store, a_scope())
    profile = replace(a_profile(), model_revision=7, image_notice=timedelta(minutes=15))

    await store.transact(lambda tx: tx.bind(a_binding(profile=profile)))

    binding = await store.read(lambda s: s.binding("vm1"))
    assert binding is not None
    assert binding.profile == profile


# --- all or nothing, and for good ----------------------------------------------------------------


def fail_having_touched_everything(tx: Transaction) -> None:
    tx.declare(a_declaration(document="changed"))
    tx.declare(a_declaration(f"{GROUP}/new"))
    tx.withdraw(GROUP)
    tx.open_operation(an_operation("another"))
    tx.record("turned_away", by=OPERATOR, cause="")
    tx.create(a_scope(id="scope9", resources=[]))
    raise MindChangedError


async def test_a_work_that_fails_among_others_leaves_nothing_of_it(store: Store) -> None:
    """I10, I14, I29"""
    await declare(store, a_declaration(), a_declaration(GROUP))
    await open_(store, an_operation("kept", age=8 * DAY))

    answers = await asyncio.gather(
        store.transact(lambda tx: tx.declare(a_declaration(f"{GROUP}/before"))),
        store.transact(fail_having_touched_everything),
        store.transact(lambda tx: tx.declare(a_declaration(f"{GROUP}/after"))),
        return_exceptions=True,
    )

    assert [isinstance(answer, MindChangedError) for answer in answers] == [False, True, False]
    assert await paths(store) == [GROUP, f"{GROUP}/after", f"{GROUP}/before", SET]
    assert await store.read(lambda s: s.declaration(SET)) == a_declaration()
    assert await store.read(lambda s: s.operation("another")) is None
    assert await store.read(lambda s: s.operation("kept")) is not None
    assert await store.read(lambda s: s.history(HistoryFilter())) == []
    assert await store.read(lambda s: s.scope_ids("")) == []


async def test_what_is_declared_outlasts_the_server(sqlite: OpenSqlite) -> None:
    """I23"""
    async with sqlite() as store:
        await keep(store, a_scope(id="Vmss/web/0"))
        await store.transact(lambda tx: tx.bind(a_binding(scope_id="Vmss/web/0")))
        await declare(store, a_declaration(), a_declaration(GROUP))
        await open_(store, an_operation())
        await store.transact(lambda tx: tx.record("turned_away", by=OPERATOR, cause="no token"))
        before = await store.read(everything)

    async with sqlite() as store:
        assert await store.read(everything) == before
        assert await store.read(lambda s: s.operation("op1")) == an_operation()
        assert await store.read(lambda s: s.holder("10.0.0.1")) == "vm1"


@given(operations)
@settings(max_examples=60)
def test_any_operation_comes_back_equal(opened: OperationRecord) -> None:
    async def check(store: Store) -> None:
        await open_(store, opened)
        assert await store.read(lambda s: s.operation(opened.id)) == opened

    in_any_store(check)
