"""Databases that fail at a moment of a test's choice."""

from enum import Enum

from tests.postgresql.databases import Database


class Failure(Enum):
    """What PostgreSQL does instead of going on."""

    LOST = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60)"
    FULL = "RAISE EXCEPTION 'could not extend file: No space left' USING ERRCODE = 'disk_full'"


def fail_creating_tables(database: Database, failure: Failure) -> None:
    database.ask(
        "CREATE FUNCTION fail() RETURNS event_trigger LANGUAGE plpgsql"
        f" AS $$ BEGIN {failure.value}; END $$"
    )
    database.ask(
        "CREATE EVENT TRIGGER fails ON ddl_command_start WHEN TAG IN ('CREATE TABLE')"
        " EXECUTE FUNCTION fail()"
    )


def fail_writing(database: Database, table: str, failure: Failure) -> None:
    database.ask(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql"
        f" AS $$ BEGIN {failure.value}; END $$"
    )
    database.ask(
        f"CREATE TRIGGER fails BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION fail()"
    )
