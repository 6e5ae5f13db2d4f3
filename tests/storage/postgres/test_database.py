"""The shared statements, as PostgreSQL runs them."""

import pytest

from forewarned.storage.postgres.database import PostgresDatabase, translated
from forewarned.storage.postgres.dialect import in_bulk
from forewarned.storage.relational import statements
from forewarned.storage.relational.statements import Statement
from tests.cluster.waiting import wait_until
from tests.postgresql.databases import Database

STATEMENTS = {name: each for name, each in vars(statements).items() if isinstance(each, Statement)}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_gives_each_column_a_value_of_its_type(database: Database, name: str) -> None:
    statement = STATEMENTS[name]
    types = dict(
        database.ask(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s",
            statement.table,
        )
    )
    columns = (*statement.columns, *statement.key)

    asked = in_bulk(statement)

    assert [part.split("[]")[0] for part in asked.split("%b::")[1:]] == [
        "text" if types[column] == "text" else "bigint" for column in columns
    ]


def test_placeholders_are_translated_and_nothing_else() -> None:
    ours = "SELECT ?, :limit, x::text[], 100 % 3 FROM t WHERE a = ANY(:some_values)"

    assert translated(ours) == (
        "SELECT %s, %(limit)s, x::text[], 100 %% 3 FROM t WHERE a = ANY(%(some_values)s)"
    )


@pytest.mark.parametrize("way", ["one by one", "in bulk"])
def test_a_session_that_has_only_written_counts_as_idle_so_that_its_locks_have_an_end(
    database: Database, way: str
) -> None:
    """I20: a node may be stopped at any moment, and keeps sending nothing."""
    state = "SELECT state FROM pg_stat_activity WHERE pid = %s"
    with database.connect() as connection:
        writer = PostgresDatabase(connection)
        with writer.pipelined():
            if way == "in bulk":
                writer.write_rows(statements.WAKE_SCOPE, [(1, "no scope")])
            else:
                writer.write("UPDATE store SET epoch = epoch")

            wait_until(
                lambda: (
                    database.ask(state, connection.info.backend_pid) == [("idle in transaction",)]
                )
            )


def test_a_row_is_asked_by_name_and_by_position(database: Database) -> None:
    with database.connect() as connection:
        [row] = PostgresDatabase(connection).ask("SELECT 1 AS one, :two AS two", {"two": "2"})

    one, two = row
    assert (row["one"], row[0], one) == (1, 1, 1)
    assert (row["two"], row[1], two) == ("2", "2", "2")


def test_questions_that_are_asked_together_see_what_was_written_before(database: Database) -> None:
    with database.connect() as connection:
        asked = PostgresDatabase(connection)
        asked.write("INSERT INTO notes VALUES (?, ?)", ("key", "value"))
        answers = asked.ask_together(
            [("SELECT value FROM notes", ()), ("SELECT ?::text AS it", ("x",))]
        )

    assert [[list(row) for row in answer] for answer in answers] == [[["value"]], [["x"]]]


def test_the_one_character_that_postgresql_has_not_is_replaced(database: Database) -> None:
    with database.connect() as connection:
        asked = PostgresDatabase(connection)
        [[one]] = asked.ask("SELECT ?::text", ("a\0b",))
        [[many]] = asked.ask("SELECT ?::text[]", (["a\0b", "c"],))

    assert (one, many) == ("a\ufffdb", ["a\ufffdb", "c"])
