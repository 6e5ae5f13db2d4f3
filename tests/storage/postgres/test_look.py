"""I25: what a look finds is exactly what has become visible since the last one."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Self

import psycopg
import pytest
from psycopg.abc import Query
from psycopg.rows import TupleRow
from typing_extensions import override

from forewarned.clock import monotonic_ns
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.service.records import News, Place
from forewarned.storage.postgres import look
from forewarned.storage.postgres.connection import Connection
from forewarned.storage.postgres.dialect import NOW
from tests.postgresql.databases import Database
from tests.storage.postgres.raw_rows import BIND, NEW_EVENT, NEW_SCOPE, add_scope


class Looker:
    """A node's place in what happens, and all it has found."""

    def __init__(self, connection: Connection, node: str = "a") -> None:
        self._connection = connection
        self._node = node
        self._last = look.first(connection, node)
        self.found: list[str] = []

    def look(self) -> News:
        news, self._last = look.look(self._connection, self._node, self._last)
        self.found += [page.scope_id for page in news.pages]
        return news


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    with database.connect(autocommit=True) as made:
        yield made


@pytest.fixture
def looker(connection: Connection) -> Looker:
    return Looker(connection)


def test_where_to_look_from_and_which_store_it_is_are_asked_in_one_transaction(
    connection: Connection,
) -> None:
    """Behind PgBouncer a crash may lie between two, and each would be of another run."""
    sent: list[str] = []

    class Recording(psycopg.Cursor[TupleRow]):
        @override
        def execute(self, query: Query, *values: Any, **options: Any) -> Self:
            sent.append(str(query).split()[0])
            return super().execute(query, *values, **options)

    connection.cursor_factory = Recording
    look.first(connection, "a")

    assert sent == ["BEGIN", "SELECT", "SELECT", "SELECT", "COMMIT"]


def test_nothing_is_found_where_nothing_has_changed(database: Database, looker: Looker) -> None:
    add_scope(database, "before")
    looker.look()

    news = looker.look()

    assert (news.pages, news.bound, news.unbound, news.history) == ((), (), (), ())
    assert looker.found == ["before"]


def test_what_is_committed_late_is_found_once_it_is(database: Database, looker: Looker) -> None:
    """Its transaction began first, so a cursor over numbers would have gone past it."""
    with database.connect() as slow:
        slow.execute(NEW_SCOPE, {"id": "slow"})
        add_scope(database, "quick")
        looker.look()
        before = list(looker.found)
        slow.commit()
        looker.look()
    looker.look()

    assert before == ["quick"]
    assert looker.found == ["quick", "slow"]


def test_what_is_rolled_back_is_never_found(database: Database, looker: Looker) -> None:
    with database.connect() as undecided:
        undecided.execute(NEW_SCOPE, {"id": "undone"})
        looker.look()
        undecided.rollback()
    looker.look()

    assert looker.found == []


def test_a_page_has_the_open_events_of_its_scope_and_the_incarnation_vms_see(
    database: Database, looker: Looker
) -> None:
    database.ask("UPDATE store SET incarnation_offset = 1000")
    add_scope(database, "scope1")
    database.ask(NEW_EVENT, "A", "scope1", None)
    database.ask(NEW_EVENT, "B", "scope1", 5)

    [page] = looker.look().pages

    assert page.is_active
    assert page.document.incarnation == 1007
    assert [event.id for event in page.document.events] == ["A"]


def test_vms_that_come_and_go_are_found(database: Database, looker: Looker) -> None:
    add_scope(database, "scope1")
    with database.connect() as connection:
        connection.execute(BIND, {"name": "vm1", "scope": "scope1", "address": "10.0.0.1"})
        connection.execute(BIND, {"name": "vm2", "scope": "scope1", "address": None})
    came = looker.look()
    with database.connect() as connection:
        connection.execute("DELETE FROM resources WHERE name = 'vm1'")
        connection.execute("INSERT INTO unbound (folded, name, at) VALUES ('vm1', 'vm1', 0)")
    went = looker.look()

    scope1 = ScopeId("scope1")
    assert set(came.bound) == {
        Place(ResourceName("vm1"), scope1, "10.0.0.1"),
        Place(ResourceName("vm2"), scope1, ""),
    }
    assert (went.bound, went.unbound) == ((), ("vm1",))


def test_history_is_found_in_the_order_of_its_numbers(database: Database, looker: Looker) -> None:
    for action in ("scheduled", "approved"):
        database.ask(
            "INSERT INTO history (at, actor, address, action, scope_id, resources, cause)"
            " VALUES (0, 'bob', '', %s, 'scope1', '[]', '')",
            action,
        )

    assert [row.action for row in looker.look().history] == ["scheduled", "approved"]
    assert looker.look().history == ()


def test_a_look_says_when_it_began_and_what_time_it_is(database: Database, looker: Looker) -> None:
    before = monotonic_ns()
    add_scope(database, "scope1")
    database.ask("UPDATE scopes SET next_wake = 60000000")
    [[seconds]] = database.ask("SELECT extract(epoch FROM clock_timestamp())")

    news = looker.look()

    assert before < news.began < monotonic_ns()
    assert 0 <= news.now.timestamp() - float(seconds) < 10
    assert news.next_wake is not None
    assert news.next_wake.timestamp() == 60


def test_nodes_that_are_alive_rank_in_one_order(database: Database, connection: Connection) -> None:
    for node, age in (("a", 0), ("b", look.ALIVE), ("c", 0)):
        database.ask(
            "INSERT INTO nodes (id, name, version, speaks, metadata, control, seen_at, lag)"
            f" VALUES (%s, '', '', 1, '', '', {NOW} - %s, 0)",
            node,
            age,
        )

    ranks = {node: Looker(connection, node).look().rank for node in "abcd"}

    assert ranks == {"a": 0, "b": 1, "c": 1, "d": 2}


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_order_of_commits_each_is_found_by_each_node_exactly_once(
    database: Database, seed: int
) -> None:
    """One transaction is open from before the first look until after the last."""
    chance = random.Random(seed)
    committed: list[str] = []
    with ExitStack() as stack:
        opened: dict[int, list[str]] = {each: [] for each in range(6)}
        writers = [stack.enter_context(database.connect()) for _ in opened]
        throughout = stack.enter_context(database.connect())
        throughout.execute(NEW_SCOPE, {"id": "throughout"})
        nodes = [
            Looker(stack.enter_context(database.connect(autocommit=True)), name) for name in "abc"
        ]
        for number in range(300):
            writer = chance.randrange(len(writers))
            match chance.choices(("insert", "commit", "roll back", "look"), (5, 3, 1, 3))[0]:
                case "insert":
                    writers[writer].execute(NEW_SCOPE, {"id": f"scope{number}"})
                    opened[writer].append(f"scope{number}")
                case "commit":
                    writers[writer].commit()
                    committed += opened[writer]
                    opened[writer] = []
                case "roll back":
                    writers[writer].rollback()
                    opened[writer] = []
                case _:
                    chance.choice(nodes).look()
        throughout.commit()
        for node in nodes:
            node.look()

    assert len(committed) > 50
    for node in nodes:
        assert sorted(node.found) == sorted([*committed, "throughout"])
