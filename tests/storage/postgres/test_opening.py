"""What is refused before anything is served, and how a database gets its tables."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from forewarned.config.values import DatabaseUrl
from forewarned.storage.errors import (
    BusyTablesError,
    CannotOpenError,
    ForeignTablesError,
    MayNotMigrateError,
    MissingRightsError,
    NewerDatabaseError,
    NoSchemaError,
    NoSuchDatabaseError,
    OlderNodesError,
    OldPostgresError,
    ReadOnlyDatabaseError,
    SignInRefusedError,
    UnreachableDatabaseError,
    WrongEncodingError,
)
from forewarned.storage.postgres import migrate
from forewarned.storage.postgres.connection import Connection, connect
from forewarned.storage.postgres.url import target
from tests.postgresql.databases import Database
from tests.postgresql.pgbouncer import pgbouncer
from tests.postgresql.servers import PostgresServer, free_port, private_folder

WHERE = "the database"


def opened(url: str) -> Connection:
    return connect(target(DatabaseUrl.parse(url)))


@pytest.fixture
def role(empty_database: Database) -> Iterator[str]:
    """One that may sign in, and nothing else."""
    empty_database.ask("DROP ROLE IF EXISTS guest")
    empty_database.ask("CREATE ROLE guest LOGIN")
    yield "guest"
    empty_database.ask("DROP OWNED BY guest")
    empty_database.ask("DROP ROLE guest")


def signed_in(url: str, user: str) -> str:
    start, _, rest = url.partition("@")
    return f"{start.partition('://')[0]}://{user}@{rest}"


# --- connecting ----------------------------------------------------------------------------------


def test_a_server_that_can_not_be_reached_is_named_with_the_reason() -> None:
    with pytest.raises(UnreachableDatabaseError) as refused:
        opened(f"postgresql://me:secret@127.0.0.1:{free_port()},127.0.0.1:{free_port()}/store")

    told = str(refused.value)
    assert told.count("Connection refused") == 2
    assert told.startswith("can't connect to PostgreSQL database store at 127.0.0.1:")
    assert "start PostgreSQL" in told
    assert "secret" not in told


def test_i20_sessions_have_the_name_that_nodes_know_each_other_by(empty_database: Database) -> None:
    between = "&" if "?" in empty_database.url else "?"

    with opened(f"{empty_database.url}{between}application_name=node-a") as connection:
        named = connection.execute("SHOW application_name").fetchone()

    assert named == ("forewarned",)


def test_a_database_that_does_not_exist_is_a_clear_error(postgres_server: PostgresServer) -> None:
    with pytest.raises(NoSuchDatabaseError, match="createdb"):
        opened(postgres_server.url("nowhere"))


def test_a_wrong_password_is_a_clear_error_without_the_password(
    postgres_server: PostgresServer,
) -> None:
    postgres_server.ask("DROP ROLE IF EXISTS careful")
    postgres_server.ask("DROP ROLE IF EXISTS password_required")
    postgres_server.ask("CREATE ROLE password_required")
    postgres_server.ask("CREATE ROLE careful LOGIN PASSWORD 'right' IN ROLE password_required")
    url = signed_in(postgres_server.url(), "careful:%s")
    try:
        opened(url.replace("%s", "right")).close()
        with pytest.raises(SignInRefusedError, match="password authentication failed") as refused:
            opened(url.replace("%s", "wr0ng"))
        with pytest.raises(SignInRefusedError, match="no password supplied"):
            opened(url.replace(":%s", ""))
    finally:
        postgres_server.ask("DROP ROLE careful, password_required")

    assert "wr0ng" not in str(refused.value)


def test_a_database_that_can_only_be_read_is_refused(empty_database: Database) -> None:
    [[name]] = empty_database.ask("SELECT current_database()")
    empty_database.ask(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')

    with pytest.raises(ReadOnlyDatabaseError, match="the primary too"):
        opened(empty_database.url)


# --- migrating -----------------------------------------------------------------------------------


def test_many_nodes_that_start_at_once_make_the_tables_once(empty_database: Database) -> None:
    failed: list[BaseException] = []

    def start() -> None:
        try:
            with opened(empty_database.url) as connection:
                migrate.prepare(connection, WHERE)
        except BaseException as error:  # noqa: BLE001  # asserted below
            failed.append(error)

    nodes = [threading.Thread(target=start) for _ in range(8)]
    for node in nodes:
        node.start()
    for node in nodes:
        node.join()

    assert failed == []
    newest = migrate.migrations()[-1].number
    assert empty_database.ask("SELECT schema, oldest_code FROM store") == [
        (newest, max(newest - 1, 1))
    ]


def test_a_step_that_meets_a_locked_table_is_tried_again(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_LOCK_TIMEOUT", "20ms")
    monkeypatch.setattr(migrate, "_TRIES", 3)
    with empty_database.connect() as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [migrate._ONE_AT_A_TIME])
        with opened(empty_database.url) as connection, pytest.raises(BusyTablesError):
            migrate.prepare(connection, WHERE)

        assert empty_database.ask("SELECT to_regclass('scopes')") == [(None,)]


def test_a_node_of_the_version_before_goes_on_and_an_older_one_is_refused(
    database: Database,
) -> None:
    """A rolling upgrade."""
    known = migrate.migrations()[-1].number
    with opened(database.url) as connection:
        connection.execute("UPDATE store SET schema = %s, oldest_code = %s", [known + 1, known])
        connection.commit()
        migrate.prepare(connection, WHERE)
        assert database.ask("SELECT schema FROM store") == [(known + 1,)]

        connection.execute("UPDATE store SET schema = %s, oldest_code = %s", [known + 2, known + 1])
        connection.commit()
        with pytest.raises(NewerDatabaseError, match=f"schema {known + 2}"):
            migrate.prepare(connection, WHERE)


def test_a_step_that_a_running_node_is_too_old_for_is_not_made(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rolling upgrade goes one version at a time."""
    known = migrate.migrations()
    number = known[-1].number
    later = [migrate.Migration(number=number + each, sql=b"SELECT 1") for each in (1, 2)]
    monkeypatch.setattr(migrate, "migrations", lambda: [*known, *later])
    database.ask(
        "INSERT INTO nodes VALUES ('old', 'host-old', '', %s, '', '', null,"
        " (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0)",
        number,
    )
    with opened(database.url) as connection:
        with pytest.raises(OlderNodesError, match=r"\(host-old\): upgrade or stop them"):
            migrate.prepare(connection, WHERE)
        assert database.ask("SELECT schema FROM store") == [(number + 1,)]

        database.ask("UPDATE nodes SET speaks = speaks + 1")
        migrate.prepare(connection, WHERE)
        assert database.ask("SELECT schema, oldest_code FROM store") == [(number + 2, number + 1)]


def test_tables_of_another_program_are_left_alone(empty_database: Database) -> None:
    empty_database.ask("CREATE TABLE events (id int)")

    with (
        opened(empty_database.url) as connection,
        pytest.raises(ForeignTablesError, match=r"\(events\)"),
    ):
        migrate.prepare(connection, WHERE)

    assert empty_database.ask("SELECT to_regclass('scopes')") == [(None,)]


def test_tables_of_other_names_may_be_there(empty_database: Database) -> None:
    """Extensions of managed servers bring some."""
    empty_database.ask("CREATE TABLE pg_stat_other (id int)")

    with opened(empty_database.url) as connection:
        migrate.prepare(connection, WHERE)


def test_a_role_that_may_not_make_tables_is_told_what_it_needs(
    empty_database: Database, role: str
) -> None:
    empty_database.ask("REVOKE CREATE ON SCHEMA public FROM PUBLIC")

    with (
        opened(signed_in(empty_database.url, role)) as connection,
        pytest.raises(MayNotMigrateError, match=r"run `forewarned migrate`.*make guest the owner"),
    ):
        migrate.prepare(connection, WHERE)


def test_a_role_that_may_not_write_is_told_what_it_needs(
    empty_database: Database, role: str
) -> None:
    with opened(empty_database.url) as connection:
        migrate.prepare(connection, WHERE)
    empty_database.ask("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO guest")

    with opened(signed_in(empty_database.url, role)) as connection:
        with pytest.raises(MissingRightsError, match="lacks the privilege DELETE on"):
            migrate.prepare(connection, WHERE)
        empty_database.ask("GRANT DELETE ON ALL TABLES IN SCHEMA public TO guest")
        migrate.prepare(connection, WHERE)


def test_a_role_without_a_schema_is_told_so(empty_database: Database, role: str) -> None:
    empty_database.ask(f"ALTER ROLE {role} SET search_path = nowhere")

    with (
        opened(signed_in(empty_database.url, role)) as connection,
        pytest.raises(NoSchemaError, match="search_path"),
    ):
        migrate.prepare(connection, WHERE)


def test_a_database_in_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    postgres_server.ask("DROP DATABASE IF EXISTS ascii")
    postgres_server.ask(
        "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    with (
        opened(postgres_server.url("ascii")) as connection,
        pytest.raises(WrongEncodingError, match="ENCODING 'UTF8'"),
    ):
        migrate.prepare(connection, WHERE)


def test_an_old_server_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of that age is at hand, so one of this age is taken for too old."""
    monkeypatch.setattr(migrate, "OLDEST_SERVER", 99)

    with opened(database.url) as connection, pytest.raises(OldPostgresError, match="99 or later"):
        migrate.prepare(connection, WHERE)


def test_every_refusal_is_one_that_an_operator_is_shown() -> None:
    assert issubclass(BusyTablesError, CannotOpenError)
    assert issubclass(UnreachableDatabaseError, CannotOpenError)


def test_text_is_compared_by_code_point_in_every_column(database: Database) -> None:
    """As in SQLite, whatever the database's own order is."""
    other = database.ask(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND data_type = 'text' AND collation_name <> 'C'"
    )

    assert other == []


def test_the_shared_tables_have_the_columns_of_sqlite(database: Database) -> None:
    import sqlite3

    from forewarned.storage.sqlite import migrate as of_sqlite

    lite = sqlite3.connect(":memory:", isolation_level=None)
    of_sqlite.migrate(lite)
    tables = [
        name for [name] in lite.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    for table in tables:
        if table.startswith("sqlite_"):
            continue
        columns = {
            name for [name] in lite.execute(f"SELECT name FROM pragma_table_info('{table}')")
        }
        found = {
            name
            for [name] in database.ask(
                "SELECT column_name FROM information_schema.columns WHERE table_name = %s", table
            )
        }
        assert found - {"changed"} == columns, table
    lite.close()


def test_connections_prepare_what_they_send_often(database: Database) -> None:
    with opened(database.url) as connection:
        for _ in range(20):
            connection.execute("SELECT 1 WHERE 1 = %s", [1])

        assert prepared(connection) == 1
        assert connection.isolation_level is psycopg.IsolationLevel.READ_COMMITTED


def test_connections_through_pgbouncer_prepare_nothing(
    database: Database, postgres_server: PostgresServer
) -> None:
    """In transaction mode it gives each transaction another session."""
    with (
        private_folder() as folder,
        pgbouncer(postgres_server, folder) as bouncer,
        opened(bouncer.url(database.name)) as connection,
    ):
        for _ in range(20):
            connection.execute("SELECT 1 WHERE 1 = %s", [1])

        assert prepared(connection) == 0


def prepared(connection: Connection) -> int:
    statement = b"SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT 1 %'"
    [count] = connection.execute(statement, prepare=False).fetchone() or [-1]
    return int(count)
