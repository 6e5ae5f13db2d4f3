"""What only PostgreSQL's tables hold: marks for other nodes, and incarnations without an offset."""

from dataclasses import replace

from forewarned.core.change import Change
from forewarned.core.ids import ScopeId
from forewarned.service.records import Binding
from forewarned.storage.postgres.transaction import PostgresTransaction
from tests.builders import OPERATOR, a_binding, a_resource, a_scope, emptied
from tests.postgresql.databases import Database
from tests.storage.postgres.attempts import do
from tests.storage.store_calls import settle_in

SCOPE1 = ScopeId("scope1")


def keep(database: Database, *bindings: Binding) -> None:
    def add(tx: PostgresTransaction) -> None:
        settle_in(tx, a_scope(resources=[a_resource(each.name) for each in bindings]))
        tx.bind_all(bindings)

    do(database, add)


def changed(database: Database, table: str) -> int:
    [[xid]] = database.ask(f"SELECT max(changed::text::bigint) FROM {table}")
    return int(xid or 0)


def test_every_save_and_every_binding_is_marked_for_other_nodes(database: Database) -> None:
    """I25"""
    keep(database, a_binding())
    scopes, resources = changed(database, "scopes"), changed(database, "resources")

    def deactivate(tx: PostgresTransaction) -> None:
        tx.save(Change(scope=replace(tx.load(SCOPE1), active=False)), by=OPERATOR)

    do(database, deactivate)
    assert changed(database, "scopes") > scopes
    assert changed(database, "resources") == resources

    do(database, lambda tx: tx.bind(a_binding(address="10.9.9.9")))
    assert changed(database, "resources") > resources


def test_a_vm_that_is_removed_can_be_found_as_gone_until_it_is_back(database: Database) -> None:
    keep(database, a_binding())

    def remove(tx: PostgresTransaction) -> None:
        tx.save(Change(scope=emptied(tx.load(SCOPE1))), by=OPERATOR)

    do(database, remove)
    gone = database.ask("SELECT folded, name FROM unbound")

    assert gone == [("vm1", "vm1")]

    def add(tx: PostgresTransaction) -> None:
        scope = tx.load(SCOPE1)
        tx.save(Change(scope=replace(scope, resources=a_scope().resources)), by=OPERATOR)
        tx.bind(a_binding())

    do(database, add)
    assert database.ask("SELECT folded, name FROM unbound") == []


def test_addresses_can_be_passed_on_in_one_go(database: Database) -> None:
    keep(database, a_binding("vm1", address="10.0.0.1"), a_binding("vm2", address="10.0.0.2"))

    do(
        database,
        lambda tx: tx.bind_all(
            [a_binding("vm2", address="10.0.0.3"), a_binding("vm1", address="10.0.0.2")]
        ),
    )

    found = database.ask("SELECT name, address FROM resources ORDER BY name")
    assert found == [("vm1", "10.0.0.2"), ("vm2", "10.0.0.3")]


def test_incarnations_are_stored_without_what_is_added_to_show_them(database: Database) -> None:
    """I7"""
    keep(database, a_binding())
    [[before]] = database.ask("SELECT incarnation FROM scopes")
    database.ask("UPDATE store SET incarnation_offset = 10000")

    def move(tx: PostgresTransaction) -> int:
        scope = tx.load(SCOPE1)
        tx.save(Change(scope=replace(scope, incarnation=scope.incarnation + 1)), by=OPERATOR)
        return scope.incarnation

    assert do(database, move) == before + 10_000
    assert database.ask("SELECT incarnation FROM scopes") == [(before + 1,)]
    shown = do(database, lambda tx: [page.document.incarnation for page in tx.pages()])
    assert shown == [before + 10_001]
