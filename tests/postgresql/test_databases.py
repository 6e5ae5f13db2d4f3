"""The server and the databases that other tests are given."""

from tests.postgresql.databases import Database, Databases
from tests.postgresql.servers import PostgresServer, private_folder


def test_each_test_has_a_copy_of_the_template_and_leaves_nothing(databases: Databases) -> None:
    with databases.empty() as template:
        template.ask("CREATE TABLE numbers AS SELECT 7 AS number")
        with databases.copy(template) as one, databases.copy(template) as other:
            one.ask("UPDATE numbers SET number = 8")

            seen = one.ask("SELECT number FROM numbers"), other.ask("SELECT number FROM numbers")

        left = template.ask("SELECT datname FROM pg_database WHERE datname = %s", one.name)

    assert seen == ([(8,)], [(7,)])
    assert left == []


def test_a_database_has_the_tables_of_the_store(database: Database) -> None:
    assert database.ask("SELECT count(*) FROM scopes") == [(0,)]


def test_a_database_goes_though_a_connection_of_the_test_is_still_open(
    databases: Databases,
) -> None:
    with databases.empty() as made:
        connection = made.connect()
        connection.execute("SELECT 1")

    connection.close()


def test_databases_of_tests_sort_as_most_servers_do(database: Database) -> None:
    """A listing in byte order has to ask for it."""
    [(version,)] = database.ask("SHOW server_version_num")
    if int(version) < 150_000:
        return

    rows = database.ask("SELECT * FROM (VALUES ('a'), ('B'), ('C')) AS words (word) ORDER BY word")
    bytewise = database.ask(
        "SELECT * FROM (VALUES ('a'), ('B')) AS words (word) ORDER BY word COLLATE \"C\""
    )

    assert [word for (word,) in rows] == ["a", "B", "C"]
    assert [word for (word,) in bytewise] == ["B", "a"]


def test_a_server_can_be_killed_set_otherwise_and_started_again() -> None:
    with private_folder() as folder, PostgresServer(folder) as server:
        server.ask("CREATE TABLE numbers AS SELECT 7 AS number")

        server.kill()
        server.set("work_mem", "5MB")
        server.start()

        assert server.ask("SELECT number FROM numbers") == [(7,)]
        assert server.ask("SHOW work_mem") == [("5MB",)]


def test_a_server_can_go_back_to_an_old_backup() -> None:
    with private_folder() as folder, PostgresServer(folder) as server:
        server.ask("CREATE TABLE numbers AS SELECT 7 AS number")
        server.back_up(folder / "backup")
        server.ask("UPDATE numbers SET number = 8")

        server.restore(folder / "backup")

        assert server.ask("SELECT number FROM numbers") == [(7,)]
