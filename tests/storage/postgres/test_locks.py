"""Several transactions at once: which wait for each other, and what each of them finds."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from psycopg.errors import LockNotAvailable, UniqueViolation

from forewarned.core.change import Change
from forewarned.core.errors import DuplicateEventError
from forewarned.core.ids import ScopeId
from forewarned.core.model import Scope
from forewarned.core.tasks import claimed
from forewarned.service.errors import NameTakenError
from forewarned.service.records import Declaration
from forewarned.storage.postgres.epoch import EpochCheck
from forewarned.storage.postgres.transaction import PostgresTransaction
from forewarned.storage.relational.publishing import outbox
from tests.builders import (
    MINUTE,
    NOON,
    OPERATOR,
    a_binding,
    a_resource,
    a_scope,
    an_event,
    event_id,
)
from tests.postgresql.databases import Database
from tests.service.subscriptions.messages import a_message
from tests.storage.postgres.attempts import attempt, do
from tests.storage.store_calls import settle_in

SCOPES = SCOPE1, SCOPE2, SCOPE3 = [ScopeId(f"scope{number}") for number in (1, 2, 3)]
EVENTS = [event_id(number) for number in (1, 2)]
TOO_LONG = 30


@pytest.fixture(autouse=True)
def scopes(database: Database) -> None:
    """Three, in order, each with an event that is due."""

    def add(tx: PostgresTransaction) -> None:
        for number, scope_id in enumerate(SCOPES, start=1):
            event = an_event(event_id(number), resources=[f"vm{number}"], not_before=NOON - MINUTE)
            settle_in(tx, a_scope(event, id=scope_id))

    do(database, add)


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def deactivate(tx: PostgresTransaction) -> None:
    tx.save(Change(scope=replace(tx.load(SCOPE1), active=False)), by=OPERATOR)


def a_declaration(document: str) -> Declaration:
    return Declaration(path="/Set", document=document, created_at=NOON)


# --- scopes --------------------------------------------------------------------------------------


def test_a_scope_is_waited_for_and_found_as_it_was_left(
    database: Database, thread: ThreadPoolExecutor
) -> None:
    """I25: no change is lost."""
    with attempt(database) as first:
        deactivate(first.transaction)
        second = thread.submit(do, database, lambda tx: tx.load(SCOPE1).active)
        _wait_until_one_waits(database)
        first.commit()

        assert not second.result(TOO_LONG)


def test_a_scope_out_of_order_is_not_waited_for(database: Database) -> None:
    """Else two transactions could wait for each other."""
    with attempt(database) as first, attempt(database) as second:
        first.transaction.load(SCOPE1)
        second.transaction.load(SCOPE2)

        with pytest.raises(LockNotAvailable):
            second.transaction.load(SCOPE1)

        assert second.locked.wanted == {SCOPE1, SCOPE2}


def test_a_free_scope_is_locked_out_of_order(database: Database) -> None:
    with attempt(database) as only:
        loaded = only.transaction.load_all([SCOPE3, SCOPE1, ScopeId("none"), SCOPE2])
        later = only.transaction.load(SCOPE1)

    assert [scope.id for scope in loaded] == [SCOPE3, SCOPE1, SCOPE2]
    assert later.id == SCOPE1


def test_what_a_rerun_touches_is_locked_in_order_whatever_order_it_is_named_in(
    database: Database, thread: ThreadPoolExecutor
) -> None:
    with attempt(database) as first:
        first.transaction.load(SCOPE1)
        second = thread.submit(_touch, database, [SCOPE3, SCOPE1])
        _wait_until_one_waits(database)

        # It waits for the first before it holds the third.
        assert first.transaction.load(SCOPE3).id == SCOPE3
        first.commit()
        assert second.result(TOO_LONG) == {SCOPE1, SCOPE3}


def test_what_is_due_is_claimed_by_one_transaction(database: Database) -> None:
    """I5"""
    with attempt(database) as first, attempt(database) as second, attempt(database) as third:
        claims = [each.transaction.claim_due(2) for each in (first, second, third)]

    assert claims == [[SCOPE1, SCOPE2], [SCOPE3], []]


# --- names and ids that are taken ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("added", "refusal"),
    [
        (a_scope(id="other", resources=[a_resource("VM1")]), NameTakenError),
        (a_scope(an_event(event_id(1)), id="other", resources=[]), DuplicateEventError),
    ],
)
def test_what_is_taken_is_found_by_the_database_and_then_said_by_a_second_run(
    database: Database, added: Scope, refusal: type[Exception]
) -> None:
    """I9, I18"""
    with pytest.raises(UniqueViolation):
        do(database, lambda tx: settle_in(tx, added))

    with pytest.raises(refusal):
        do(database, lambda tx: settle_in(tx, added), is_rerun=True)


# --- what is not part of a scope -----------------------------------------------------------------


def test_a_counter_that_two_read_is_not_counted_twice(
    database: Database, thread: ThreadPoolExecutor
) -> None:
    do(database, lambda tx: tx.put_note("last", "1"))

    def count(tx: PostgresTransaction) -> None:
        tx.put_note("last", str(int(tx.note("last") or 0) + 1))

    with attempt(database) as first:
        count(first.transaction)
        second = thread.submit(do, database, count)
        _wait_until_one_waits(database)
        first.commit()
        second.result(TOO_LONG)

    assert do(database, lambda tx: tx.note("last")) == "3"


@pytest.mark.parametrize("what", ["note", "declaration"])
def test_what_another_has_just_added_is_not_replaced_unseen(
    database: Database, thread: ThreadPoolExecutor, what: str
) -> None:
    """The function is run again, and finds it."""

    def add(tx: PostgresTransaction) -> None:
        if what == "note":
            tx.put_note("Owner", "second")
        else:
            tx.declare(a_declaration("second"))

    with attempt(database) as first:
        first.transaction.put_note("Owner", "first")
        first.transaction.declare(a_declaration("first"))
        second = thread.submit(do, database, add)
        _wait_until_one_waits(database)
        first.commit()

        with pytest.raises(UniqueViolation):
            second.result(TOO_LONG)


def test_a_declaration_that_is_read_to_be_replaced_is_waited_for(
    database: Database, thread: ThreadPoolExecutor
) -> None:
    """No number of an instance is used twice."""
    do(database, lambda tx: tx.declare(a_declaration("{}")))

    def count(tx: PostgresTransaction) -> None:
        found = tx.declaration("/set")
        assert found is not None
        tx.declare(replace(found, next_instance=found.next_instance + 1))

    with attempt(database) as first:
        count(first.transaction)
        second = thread.submit(do, database, count)
        _wait_until_one_waits(database)
        first.commit()
        second.result(TOO_LONG)

    found = do(database, lambda tx: tx.declaration("/set"))
    assert found is not None
    assert found.next_instance == 2


def _touch(database: Database, scope_ids: list[ScopeId]) -> set[ScopeId]:
    with attempt(database, scope_ids) as only:
        return {each for each in SCOPES if only.locked.find(each) is not None}


def _wait_until_one_waits(database: Database) -> None:
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    assert any(database.ask(waiting)[0][0] for _ in range(1_000))


# --- the outbox ----------------------------------------------------------------------------------


def test_a_message_is_taken_as_a_change_leaves_it_that_removes_its_vm(
    database: Database, thread: ThreadPoolExecutor
) -> None:
    """The one says where the VM was. After it, nobody knows."""

    def take(tx: PostgresTransaction) -> list[str]:
        return [message.resource_id for message in tx.place(tx.take_outbox(limit=10).unaddressed)]

    approved = a_message(event=an_event(resources=["vm1"]))._replace(scope_id=SCOPE1)
    do(database, lambda tx: tx.bind(a_binding()))
    database.ask(
        "INSERT INTO outbox (scope_id, content) VALUES (%s, %s)",
        SCOPE1,
        outbox.content_of(approved),
    )
    with attempt(database) as first:
        places = outbox.places_of(first.buffer, approved.vms)
        outbox.place_waiting(first.buffer, SCOPE1, places)
        first.buffer.write("DELETE FROM resources WHERE scope_id = ?", (SCOPE1,))
        second = thread.submit(do, database, take)
        _wait_until_one_waits(database)
        first.commit()

        [resource_id] = second.result(TOO_LONG)

    assert resource_id.endswith("/virtualMachines/vm1")


# --- the offset of incarnations ------------------------------------------------------------------


def test_a_new_scope_and_a_new_epoch_never_wait_for_each_other(
    database: Database, thread: ThreadPoolExecutor
) -> None:
    """A node that raises incarnations locks scopes, then the store; so does one that adds a VM."""
    database.ask("UPDATE store SET timeline = '00000009'")

    def check() -> int:
        with database.connect() as connection:
            return EpochCheck(None)(connection)

    with attempt(database) as adding:
        adding.transaction.create(a_scope(id=ScopeId("scope4"), resources=[]))
        checking = thread.submit(check)
        while not database.ask("SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert not checking.done()
        adding.commit()

    assert checking.result(TOO_LONG) == 2


# --- tasks ---------------------------------------------------------------------------------------


def add_tasks(database: Database) -> None:
    """Of events 1 and 2, which have started."""
    database.ask("UPDATE events SET status = 'Started' WHERE id = ANY(%s)", EVENTS)
    for vm, event in enumerate(EVENTS, start=1):
        database.ask(
            "INSERT INTO tasks (event_id, vm, scope_id, type, host, actuator, claimable_at)"
            " VALUES (%s, %s, %s, 'Reboot', 'hv-a', 'rack1', 0)",
            event,
            f"vm{vm}",
            f"scope{vm}",
        )


def test_a_task_is_claimed_by_one_of_several_nodes(database: Database) -> None:
    """I22: what another is claiming is not found, and not waited for."""
    add_tasks(database)

    with attempt(database) as first, attempt(database) as second:
        one = first.transaction.claimable_tasks("rack1", limit=1)
        two = second.transaction.claimable_tasks("rack1", limit=9)

    assert [task.vm for task in one] == ["vm1"]
    assert [task.vm for task in two] == ["vm2"]


def test_a_report_on_a_task_waits_for_a_claim_of_it(
    database: Database, thread: ThreadPoolExecutor
) -> None:
    """I22: it finds the attempt that the claim has begun."""
    add_tasks(database)

    with attempt(database) as claiming:
        found = claiming.transaction.claimable_tasks("rack1", limit=1)
        reporting = thread.submit(do, database, lambda tx: tx.tasks_of(EVENTS[:1]))
        claiming.transaction.put_tasks([claimed(found[0], holder="one", now=NOON)])
        claiming.connection.commit()

    [task] = reporting.result(TOO_LONG)
    assert task.attempt == 1
