"""Any value comes back from PostgreSQL as it was stored, in the order that SQLite has it in."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forewarned.core.model import Scope
from forewarned.service.records import Declaration, OperationRecord
from forewarned.storage.diff import fold
from tests.builders import NOON, a_scope
from tests.postgresql.databases import Database, Databases
from tests.storage import strategies
from tests.storage.postgres.attempts import attempt
from tests.storage.store_calls import settle_in

# PostgreSQL has no such character: see `test_database`.
scopes = strategies.scopes.filter(lambda scope: "\\x00" not in repr(scope))
odd = strategies.odd.map(lambda text: text.replace("\0", ""))
declared = strategies.declared.filter(lambda made: "\\x00" not in repr(made))
operations = strategies.operations.filter(lambda opened: "\\x00" not in repr(opened))


def _declaration(path: str) -> Declaration:
    return Declaration(path=path, document="{}", created_at=NOON)


@pytest.fixture(scope="module")
def kept(databases: Databases, migrated_template: Database) -> Iterator[Database]:
    """Nothing is committed, so that each try finds it empty."""
    with databases.copy(migrated_template) as made:
        yield made


@given(scopes)
@settings(max_examples=60)
def test_any_scope_comes_back_equal_and_in_order(kept: Database, scope: Scope) -> None:
    with attempt(kept) as only:
        settle_in(only.transaction, scope)
        [saved] = only.transaction.scopes()

    assert saved.scope == scope
    assert list(saved.scope.resources) == list(scope.resources)
    assert list(saved.scope.events) == list(scope.events)


@given(st.lists(declared, max_size=8), odd)
@example([_declaration("a%b"), _declaration("aXb"), _declaration("A_B")], "A%")
@example([_declaration("straße"), _declaration("STRASSE/x"), _declaration("stras")], "Strass")
@example([_declaration("a\U0010ffff\U0010ffff"), _declaration("b")], "A\U0010ffff")
@settings(max_examples=60)
def test_declarations_are_those_whose_paths_begin_so_in_order(
    kept: Database, made: list[Declaration], prefix: str
) -> None:
    expected: dict[str, Declaration] = {}
    for each in made:
        first = expected.get(fold(each.path), each)
        expected[fold(each.path)] = replace(each, path=first.path)

    with attempt(kept) as only:
        for each in made:
            only.transaction.declare(each)
        found = list(only.transaction.declarations(prefix))

    assert found == [expected[p] for p in sorted(expected) if p.startswith(fold(prefix))]


@given(st.lists(odd, max_size=8, unique=True), odd)
@example(["vmss/Web/1", "VMSS/web/0", "vmss/web2/0", "vmss/we%/0"], "vmss/WEB/")
@settings(max_examples=60)
def test_scope_ids_are_those_that_begin_so_the_oldest_first(
    kept: Database, ids: list[str], prefix: str
) -> None:
    with attempt(kept) as only:
        for each in ids:
            settle_in(only.transaction, a_scope(id=each, resources=[]))
        found = only.transaction.scope_ids(prefix)

    assert found == [each for each in ids if fold(each).startswith(fold(prefix))]


@given(operations)
@settings(max_examples=60)
def test_any_operation_comes_back_equal(kept: Database, opened: OperationRecord) -> None:
    with attempt(kept) as only:
        only.transaction.open_operation(opened)
        found = only.transaction.operation(opened.id)

    assert found == opened
