"""What every store promises about writing. (What it answers: test_contract_questions.py.)"""

from dataclasses import replace

import pytest

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.change import Change, with_event, without_event
from forewarned.core.errors import DuplicateEventError, UnknownScopeError
from forewarned.core.ids import ScopeId
from forewarned.core.model import Actor, EventStatus, Scope
from forewarned.core.rules import Rules
from forewarned.core.transitions import (
    Activated,
    Approved,
    Canceled,
    Completed,
    ResourceAdded,
    Scheduled,
)
from forewarned.service.errors import NameTakenError
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Store, Transaction
from forewarned.service.records import Commit
from forewarned.storage.errors import UnloadedScopeError, VanishedEventError
from tests.builders import (
    HOUR,
    MINUTE,
    NOON,
    OPERATOR,
    A,
    B,
    C,
    a_resource,
    a_scope,
    an_event,
    emptied,
)
from tests.storage.store_calls import cache, keep, load, save, save_in, settle_in

SCOPE1 = ScopeId("scope1")


class MindChangedError(Exception):
    pass


def canceled(scope: Scope) -> Canceled:
    over = replace(scope.events[A], status=EventStatus.CANCELED)
    return Canceled(scope_id=scope.id, at=NOON, event=over, reason="not today")


# --- one transaction -----------------------------------------------------------------------------


async def test_a_saved_scope_is_loaded_as_it_was_saved(store: Store) -> None:
    scope = a_scope(an_event(A), an_event(B), incarnation=7, last_read_at=NOON - HOUR)

    await keep(store, scope)

    assert await load(store) == scope


async def test_a_work_that_fails_changes_nothing_and_its_error_comes_out(store: Store) -> None:
    """I10, I14"""
    scope = a_scope(an_event(A))
    await keep(store, scope)
    before = await cache(store)

    def decision(tx: Transaction) -> None:
        settle_in(tx, a_scope(an_event(B, resources=["vm2"]), id="scope2"))
        save_in(tx, replace(scope, active=False))
        tx.put_note("fleet", "new")
        raise MindChangedError

    with pytest.raises(MindChangedError):
        await store.transact(decision)

    assert await cache(store) == before
    assert await store.read(lambda s: (s.note("fleet"), s.event(B))) == (None, None)
    assert await store.read(lambda s: s.history(HistoryFilter())) == []


@pytest.mark.parametrize("touching", [(), (SCOPE1,)])
async def test_a_scope_that_was_not_loaded_in_the_transaction_is_not_saved(
    store: Store, touching: tuple[ScopeId, ...]
) -> None:
    """I5: nodes wait for each other where they load, so it may have changed since."""
    await keep(store, a_scope())
    scope = await load(store)
    change = Change(scope=replace(scope, active=False))

    with pytest.raises(UnloadedScopeError):
        await store.transact(lambda tx: tx.save(change, by=OPERATOR), touching=touching)

    assert await load(store) == scope


async def test_a_scope_that_was_loaded_with_others_can_be_saved(store: Store) -> None:
    await keep(store, a_scope(), a_scope(id="scope2", resources=[]))
    scope2, unknown = ScopeId("scope2"), ScopeId("unknown")

    def decision(tx: Transaction) -> list[ScopeId]:
        loaded = tx.load_all([scope2, unknown, SCOPE1])
        for scope in loaded:
            tx.save(Change(scope=replace(scope, active=False)), by=OPERATOR)
        return [scope.id for scope in loaded]

    found, commit = await store.transact(decision, touching=(SCOPE1, scope2))

    assert found == [scope2, SCOPE1]
    assert [(page.scope_id, page.is_active) for page in commit.shown] == [
        (scope2, False),
        (SCOPE1, False),
    ]


async def test_the_store_goes_on_after_a_work_that_failed(store: Store) -> None:
    def fails(_: Transaction) -> None:
        raise MindChangedError

    with pytest.raises(MindChangedError):
        await store.transact(fails)

    await keep(store, a_scope())
    assert await load(store) == a_scope()


async def test_an_exhausted_iterator_in_a_work_is_an_error_and_no_endless_wait(
    store: Store,
) -> None:
    with pytest.raises((RuntimeError, StopIteration)):
        await store.transact(lambda _: next(iter(())))


async def test_the_result_of_the_work_is_returned(store: Store) -> None:
    result, _ = await store.transact(lambda tx: tx.exists(SCOPE1))

    assert result is False


async def test_the_clock_is_read_once_for_a_transaction(store: Store, clock: VirtualClock) -> None:
    (first, second), _ = await store.transact(lambda tx: (tx.now, tx.now))
    await clock.step(MINUTE)
    later, _ = await store.transact(lambda tx: tx.now)

    assert (first, second, later) == (NOON, NOON, NOON + MINUTE)
    assert await store.read(lambda s: s.now) == NOON + MINUTE


async def test_a_transaction_sees_what_it_has_written(store: Store) -> None:
    scope = a_scope(an_event(A, maintenance="work"))

    def decision(tx: Transaction) -> None:
        settle_in(tx, scope)
        assert tx.exists(SCOPE1)
        assert tx.load(SCOPE1) == scope
        assert [saved.scope for saved in tx.scopes()] == [scope]
        assert tx.scopes_of_work(scope.events[A].maintenance) == [SCOPE1]  # type: ignore[arg-type]  # set above
        assert tx.next_wake() == NOON

    await store.transact(decision)


# --- creating ------------------------------------------------------------------------------------


async def test_loading_and_saving_an_unknown_scope_is_refused(store: Store) -> None:
    with pytest.raises(UnknownScopeError):
        await load(store)
    with pytest.raises(UnknownScopeError):
        await save(store, a_scope())


async def test_a_scope_is_created_once(store: Store) -> None:
    await keep(store, a_scope())

    with pytest.raises(ValueError, match="exists"):
        await store.transact(lambda tx: tx.create(emptied(a_scope())))


async def test_a_scope_is_created_without_vms_and_events(store: Store) -> None:
    with pytest.raises(ValueError, match="without VMs"):
        await store.transact(lambda tx: tx.create(a_scope()))


async def test_a_created_scope_is_told_of(store: Store) -> None:
    _, commit = await store.transact(lambda tx: tx.create(emptied(a_scope())))

    assert [(saved.scope, saved.revision) for saved in commit.scopes] == [(emptied(a_scope()), 1)]


# --- revisions and what is told ------------------------------------------------------------------


async def test_saving_what_is_there_already_writes_nothing(store: Store) -> None:
    scope = a_scope(an_event(A))
    await keep(store, scope)
    before = await cache(store)

    commit = await save(store, scope)

    assert replace(commit, next_wake=None) == Commit()
    assert await cache(store) == before


async def test_each_transaction_that_changes_a_scope_moves_its_revision_by_one(
    store: Store,
) -> None:
    await keep(store, a_scope())

    first = await save(store, a_scope(incarnation=2))
    second = await save(store, a_scope(incarnation=3))

    revisions = [saved.revision for commit in (first, second) for saved in commit.scopes]
    assert revisions == [2, 3]


async def test_a_transition_alone_moves_the_revision(store: Store) -> None:
    await keep(store, a_scope())

    commit = await save(store, a_scope(), Activated(scope_id=SCOPE1, at=NOON))

    assert [saved.revision for saved in commit.scopes] == [2]


async def test_a_scope_saved_twice_in_a_transaction_is_told_of_once_as_it_ended_up(
    store: Store,
) -> None:
    await keep(store, a_scope())
    scheduled = [Scheduled(scope_id=SCOPE1, at=NOON, event=an_event(id)) for id in (A, B)]

    def decision(tx: Transaction) -> None:
        for fact in scheduled:
            scope = with_event(tx.load(SCOPE1), fact.event)
            tx.save(Change(scope=scope, transitions=(fact,)), by=OPERATOR)

    _, commit = await store.transact(decision)

    assert [saved.scope for saved in commit.scopes] == [a_scope(an_event(A), an_event(B))]
    assert [saved.revision for saved in commit.scopes] == [2]
    assert commit.transitions == tuple(scheduled)
    assert list((await load(store)).events) == [A, B]


async def test_what_a_commit_tells_is_what_a_later_read_finds(store: Store) -> None:
    """I10, I25"""
    commit = await keep(store, a_scope(an_event(A)), a_scope(id="scope2", resources=[]))

    assert list(commit.scopes) == await cache(store)


async def test_a_commit_tells_the_earliest_wake_of_all_scopes(sole_store: Store) -> None:
    early = a_scope(an_event(A, not_before=NOON + MINUTE))
    late = a_scope(an_event(B, not_before=NOON + HOUR, resources=["vm2"]), id="scope2")

    assert (await keep(sole_store, early, late)).next_wake == NOON + MINUTE
    commit = await save(sole_store, without_event(early, A), canceled(early))

    assert commit.next_wake == NOON + HOUR


# --- events --------------------------------------------------------------------------------------


async def test_an_event_that_ended_is_kept_with_how_it_ended(store: Store) -> None:
    """I18, I19"""
    scope = a_scope(an_event(A), an_event(B, status=EventStatus.STARTED))
    await keep(store, scope)
    completed = replace(scope.events[B], status=EventStatus.COMPLETED)

    await save(
        store,
        replace(scope, events={}),
        canceled(scope),
        Completed(scope_id=SCOPE1, at=NOON + MINUTE, event=completed),
    )

    first, second = await store.read(lambda s: (s.event(A), s.event(B)))
    assert first is not None
    assert second is not None
    assert (first.event.status, first.ended_at, first.end_reason) == (
        EventStatus.CANCELED,
        NOON,
        "not today",
    )
    assert (second.event, second.ended_at, second.end_reason) == (completed, NOON + MINUTE, "")
    assert (await load(store)).events == {}


async def test_an_event_that_vanishes_without_a_word_is_a_mistake_and_stays(store: Store) -> None:
    """I19"""
    scope = a_scope(an_event(A))
    await keep(store, scope)

    with pytest.raises(VanishedEventError):
        await save(store, without_event(scope, A))

    assert await load(store) == scope


async def test_an_event_scheduled_and_canceled_in_one_change_is_kept(store: Store) -> None:
    """I19"""
    scope = a_scope(an_event(A))
    await keep(store, emptied(scope))

    await save(
        store,
        without_event(scope, A),
        Scheduled(scope_id=SCOPE1, at=NOON, event=an_event(A)),
        canceled(scope),
    )

    assert await store.read(lambda s: s.closed(SCOPE1, [A])) == {A}


@pytest.mark.parametrize("is_over", [False, True])
async def test_an_event_id_is_used_once_in_the_whole_store(store: Store, is_over: bool) -> None:
    """I18"""
    scope = a_scope(an_event(A))
    other = a_scope(id="scope2", resources=[a_resource("vm2")])
    await keep(store, scope, other)
    if is_over:
        await save(store, without_event(scope, A), canceled(scope))

    with pytest.raises(DuplicateEventError):
        await save(store, with_event(other, an_event(A, resources=["vm2"])))

    assert (await load(store, "scope2")).events == {}


async def test_a_finished_event_does_not_come_back(store: Store) -> None:
    """I18"""
    scope = a_scope(an_event(A))
    await keep(store, scope)
    await save(store, without_event(scope, A), canceled(scope))

    with pytest.raises(DuplicateEventError):
        await save(store, scope)


async def test_events_keep_the_order_they_came_in_whatever_changes_in_them(store: Store) -> None:
    scope = a_scope(an_event(C), an_event(A))
    await keep(store, scope)

    changed = with_event(scope, replace(scope.events[C], description="soon"))
    await save(store, with_event(changed, an_event(B)))

    assert list((await load(store)).events) == [C, A, B]


# --- history -------------------------------------------------------------------------------------


async def test_every_transition_has_one_row_of_history(store: Store) -> None:
    """I29"""
    await keep(store, a_scope())
    new = lifecycle.NewEvent(
        id=A,
        type=an_event().type,
        source=an_event().source,
        resources=an_event().resources,
    )

    def decision(tx: Transaction) -> None:
        change = lifecycle.schedule(tx.load(SCOPE1), new, rules=Rules(), now=tx.now)
        change = change.plus(
            lifecycle.approve(change.scope, [A], by=OPERATOR, rules=Rules(), now=tx.now)
        )
        tx.save(change, by=OPERATOR)
        change = lifecycle.complete(tx.load(SCOPE1), A, now=tx.now)
        tx.save(change, by=Actor(name="actuator"))

    _, commit = await store.transact(decision)
    rows = await store.read(lambda s: s.history(HistoryFilter()))

    assert len(rows) == len(commit.transitions) == 4
    assert [(row.id, row.action, row.actor, row.address, row.cause) for row in rows] == [
        (4, "completed", "actuator", "", ""),
        (3, "started", "operator", "127.0.0.1", "approved"),
        (2, "approved", "operator", "127.0.0.1", ""),
        (1, "scheduled", "operator", "127.0.0.1", ""),
    ]
    assert {(row.event_id, row.event_type, row.resources, row.at) for row in rows} == {
        (A, an_event().type, an_event().resources, NOON)
    }


async def test_history_names_the_vm_a_transition_is_about_and_why_an_event_was_canceled(
    store: Store,
) -> None:
    scope = a_scope(an_event(A))
    await keep(store, scope)

    await save(
        store,
        without_event(scope, A),
        ResourceAdded(scope_id=SCOPE1, at=NOON, resource=a_resource("vm9").name),
        canceled(scope),
        Activated(scope_id=SCOPE1, at=NOON),
    )

    rows = await store.read(lambda s: s.history(HistoryFilter()))
    assert [(row.action, row.resources, row.cause, row.event_id) for row in rows] == [
        ("activated", (), "", None),
        ("canceled", ("vm1",), "not today", A),
        ("resource_added", ("vm9",), "", None),
    ]


async def test_a_transition_told_twice_is_written_twice_as_each_is_a_fact(store: Store) -> None:
    """I29"""
    scope = a_scope(an_event(A))
    await keep(store, scope)
    fact = Approved(scope_id=SCOPE1, at=NOON, event=an_event(A))

    await save(store, scope, fact)
    await save(store, scope, fact)

    rows = await store.read(lambda s: s.history(HistoryFilter()))
    assert [row.id for row in rows] == [2, 1]


# --- VMs -----------------------------------------------------------------------------------------


async def test_vms_keep_their_order_as_they_come_and_go(store: Store) -> None:
    names = ["b", "a", "d"]
    await keep(store, a_scope(resources=map(a_resource, names)))

    for names in (["b", "d"], ["b", "d", "a"], ["a", "b", "d"], ["a", "c", "b"], ["c", "b", "a"]):
        await save(store, a_scope(resources=map(a_resource, names)))

        assert list((await load(store)).resources) == names


async def test_a_vm_is_changed_where_it_stands(store: Store) -> None:
    await keep(store, a_scope(resources=map(a_resource, "abc")))
    changed = a_scope(resources=[a_resource("a"), a_resource("b", host="host9"), a_resource("c")])

    await save(store, changed)

    loaded = await load(store)
    assert loaded == changed
    assert list(loaded.resources) == ["a", "b", "c"]


@pytest.mark.parametrize(("there", "wanted"), [("vm1", "VM1"), ("Straße", "STRASSE")])
async def test_a_name_is_taken_in_any_letter_case(store: Store, there: str, wanted: str) -> None:
    other = a_scope(id="scope2", resources=[])
    await keep(store, a_scope(resources=[a_resource(there)]), other)

    with pytest.raises(NameTakenError) as refused:
        await save(store, a_scope(id="scope2", resources=[a_resource(wanted)]))

    assert (refused.value.name, refused.value.scope_id) == (wanted, "scope1")
    assert await load(store, "scope2") == other


async def test_two_vms_of_one_scope_differ_in_more_than_letter_case(store: Store) -> None:
    await keep(store, a_scope())

    with pytest.raises(NameTakenError):
        await save(store, a_scope(resources=[a_resource("vm1"), a_resource("VM1")]))


async def test_a_vm_can_change_the_letter_case_of_its_name(store: Store) -> None:
    await keep(store, a_scope())
    renamed = a_scope(resources=[a_resource("VM1")])

    commit = await save(store, renamed)

    assert commit.unbound == ("vm1",)
    assert await load(store) == renamed


async def test_a_vm_can_move_to_another_scope_in_one_transaction(store: Store) -> None:
    await keep(store, a_scope(), a_scope(id="scope2", resources=[]))

    def decision(tx: Transaction) -> None:
        save_in(tx, a_scope(resources=[]))
        save_in(tx, a_scope(id="scope2"))

    await store.transact(decision)

    assert list((await load(store, "scope2")).resources) == ["vm1"]
