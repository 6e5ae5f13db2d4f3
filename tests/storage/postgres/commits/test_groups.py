"""Groups, reruns and unknown outcomes, with small functions over plain SQL."""

import asyncio
import contextlib
import threading
from datetime import timedelta

import psycopg
import pytest

from forewarned.core.ids import ScopeId
from forewarned.service.errors import StoreUnavailableError, UnknownOutcomeError
from forewarned.storage.postgres.commits import groups
from forewarned.storage.postgres.commits.groups import MOST, TRIES
from forewarned.storage.postgres.connection import Connection
from tests.postgresql.databases import Database
from tests.postgresql.servers import PostgresServer
from tests.storage.postgres.commits.plain_functions import TOO_LONG, add, do, notes, running, until
from tests.storage.postgres.missed_standby import missed_standby, waiting


class MindChangedError(Exception):
    pass


# --- groups --------------------------------------------------------------------------------------


async def test_functions_that_come_together_share_a_transaction(database: Database) -> None:
    async with running(database.url) as store:
        free = threading.Event()
        first = asyncio.create_task(do(store.grouped, lambda _: free.wait(TOO_LONG)))
        await asyncio.sleep(0)
        rest = [asyncio.create_task(do(store.grouped, add(str(n)))) for n in range(MOST + 6)]
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(first, *rest)

    assert len(notes(database)) == MOST + 6
    assert len(store.units) <= 3


async def test_while_a_group_decides_no_other_begins(database: Database) -> None:
    """So what comes meanwhile shares a transaction, although another connection is idle."""
    async with running(database.url, threads=2) as store:
        free = threading.Event()
        first = asyncio.create_task(do(store.grouped, lambda _: free.wait(TOO_LONG)))
        await until(lambda: len(store.units) == 1)
        second = asyncio.create_task(do(store.grouped, add("second")))
        await until(store.grouped._waiting.empty)
        rest = [asyncio.create_task(do(store.grouped, add(str(n)))) for n in range(5)]
        await asyncio.sleep(0)
        meanwhile = len(store.units)
        free.set()
        await asyncio.gather(first, second, *rest)

    assert meanwhile == 1
    assert len(notes(database)) == 6
    assert len(store.units) <= 4


async def test_a_group_that_gets_no_further_does_not_hold_up_the_next(database: Database) -> None:
    """It may wait for a scope that another node has locked."""
    async with running(database.url, threads=2, longest_turn=0.01) as store:
        free = threading.Event()
        first = asyncio.create_task(do(store.grouped, lambda _: free.wait(TOO_LONG)))
        await until(lambda: len(store.units) == 1)

        await do(store.grouped, add("second"))
        is_waiting = not first.done()
        free.set()
        await first

    assert is_waiting
    assert set(notes(database)) == {"second"}


async def test_a_function_of_a_group_that_refuses_is_undone_alone(database: Database) -> None:
    def refuse(connection: Connection) -> None:
        add("refused")(connection)
        raise MindChangedError

    async with running(database.url) as store:
        free = threading.Event()
        first = asyncio.create_task(do(store.grouped, lambda _: free.wait(TOO_LONG)))
        await asyncio.sleep(0)
        several = [do(store.grouped, each) for each in (add("a"), refuse, add("b"))]
        together = asyncio.gather(*several, return_exceptions=True)
        await asyncio.sleep(0)
        free.set()
        await first
        outcomes = await together

    assert [type(outcome) for outcome in outcomes] == [type(None), MindChangedError, type(None)]
    assert set(notes(database)) == {"a", "b"}


async def test_a_function_that_always_fails_takes_nobody_with_it(database: Database) -> None:
    """Two tries together, then each by itself."""
    database.ask("INSERT INTO notes VALUES ('taken', '')")
    async with running(database.url) as store:
        free = threading.Event()
        first = asyncio.create_task(do(store.grouped, lambda _: free.wait(TOO_LONG)))
        await asyncio.sleep(0)
        several = [do(store.grouped, each) for each in (add("a"), add("taken"), add("b"))]
        together = asyncio.gather(*several, return_exceptions=True)
        await asyncio.sleep(0)
        free.set()
        await first
        outcomes = await together

    assert [type(outcome) for outcome in outcomes] == [
        type(None),
        StoreUnavailableError,
        type(None),
    ]
    assert set(notes(database)) == {"a", "b", "taken"}


# --- reruns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.UniqueViolation,
        psycopg.errors.SerializationFailure,
        psycopg.errors.DeadlockDetected,
        psycopg.errors.LockNotAvailable,
    ],
)
async def test_a_function_that_others_got_in_the_way_of_is_run_again(
    database: Database, error: type[psycopg.Error]
) -> None:
    runs: list[str] = []

    def function(connection: Connection) -> int:
        add(str(len(runs)))(connection)
        runs.append("")
        if len(runs) < TRIES:
            raise error
        return len(runs)

    async with running(database.url) as store:
        assert await do(store.alone, function) == TRIES

    assert set(notes(database)) == {str(TRIES - 1)}


async def test_after_five_tries_the_store_is_unavailable(database: Database) -> None:
    runs: list[str] = []

    def function(_: Connection) -> None:
        runs.append("")
        raise psycopg.errors.DeadlockDetected

    async with running(database.url) as store:
        with pytest.raises(StoreUnavailableError, match="failed 5 times"):
            await do(store.alone, function)

    assert len(runs) == TRIES


async def test_a_rerun_begins_by_locking_what_the_run_before_wanted(database: Database) -> None:
    async with running(database.url) as store:

        def function(_: Connection) -> None:
            if len(store.units) == 1:
                store.units[-1].wanted = [ScopeId("a"), ScopeId("b")]
                raise psycopg.errors.LockNotAvailable

        await do(store.alone, function, touching=[ScopeId("c")])

    assert set(store.units[1].wanted) == {"a", "b", "c"}


async def test_other_errors_of_the_database_are_not_tried_again(database: Database) -> None:
    runs: list[str] = []

    def function(connection: Connection) -> None:
        runs.append("")
        connection.execute("SELECT 1 / 0")

    async with running(database.url) as store:
        with pytest.raises(StoreUnavailableError, match="division by zero"):
            await do(store.alone, function)
        await do(store.alone, add("next"))

    assert len(runs) == 1
    assert set(notes(database)) == {"next"}


async def test_what_was_decided_too_long_ago_is_decided_again_before_it_is_published(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I2."""
    monkeypatch.setattr(groups, "OLDEST", timedelta(seconds=0.6))
    runs: list[str] = []

    def function(connection: Connection) -> None:
        add(str(len(runs)))(connection)
        runs.append("")
        if len(runs) == 1:
            connection.execute("SELECT pg_sleep(0.7)")

    async with running(database.url, publishes=True) as store:
        await do(store.alone, function)
    async with running(database.url, publishes=False) as store:
        runs.clear()
        await do(store.alone, function)

    assert set(notes(database)) == {"1", "0"}
    assert len(store.units) == 1


async def test_what_is_always_too_old_lets_go_of_what_it_locked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "OLDEST", timedelta(seconds=-1))
    async with running(database.url, publishes=True) as store:
        with pytest.raises(StoreUnavailableError):
            await do(store.alone, add("a"))
        left = database.ask("SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'")

    assert left == []


# --- lost connections ----------------------------------------------------------------------------


def end(database: Database, pid: int) -> None:
    database.ask("SELECT pg_terminate_backend(%s, 10000)", pid)


async def test_a_function_whose_connection_is_lost_is_run_again_on_another(
    database: Database,
) -> None:
    """I23."""
    pids: list[int] = []

    def function(connection: Connection) -> None:
        add(str(len(pids)))(connection)
        pids.append(connection.info.backend_pid)
        if len(pids) == 1:
            end(database, pids[0])

    async with running(database.url) as store:
        await do(store.alone, function)
        # And one that is lost between two transactions.
        end(database, pids[1])
        await do(store.alone, add("later"))

    assert set(notes(database)) == {"1", "later"}


@pytest.fixture
def slow_commits(database: Database) -> None:
    """A commit that adds the note `slow` waits in the database before it is made."""
    database.ask(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_lock(7); RETURN NULL; END $$"
    )
    database.ask(
        "CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW WHEN (new.key = 'slow') EXECUTE FUNCTION wait()"
    )


@pytest.mark.usefixtures("slow_commits")
async def test_a_commit_that_was_cut_off_before_it_was_made_is_made_again(
    database: Database,
) -> None:
    """I14, I23."""
    pids: list[int] = []

    def function(connection: Connection) -> None:
        pids.append(connection.info.backend_pid)
        add("slow" if len(pids) == 1 else "quick")(connection)

    with database.connect() as other:
        other.execute("SELECT pg_advisory_lock(7)")
        async with running(database.url) as store:
            asked = asyncio.create_task(do(store.alone, function))
            await until(lambda: waiting(database, "Lock"))
            end(database, pids[0])
            await asked

    assert set(notes(database)) == {"quick"}


# --- standbys ------------------------------------------------------------------------------------


async def test_a_commit_that_waits_for_a_standby_is_not_answered_and_told_once_it_is_made(
    lonely: Database, lonely_server: PostgresServer
) -> None:
    """I14: a limit on statements would end the wait, and PostgreSQL would say that all is well."""
    told: list[None] = []
    async with running(lonely.url) as store:
        with missed_standby(lonely_server):
            with pytest.raises(UnknownOutcomeError):
                await store.alone.run(add("kept"), told.append, patience=6)
            assert waiting(lonely, "SyncRep")
            with pytest.raises(StoreUnavailableError):
                await store.alone.run(add("never begun"), told.append, patience=0.01)
            assert told == []

    assert told == [None]
    assert store.alone.unknown_outcomes == 1
    assert set(notes(lonely)) == {"kept"}


@pytest.mark.parametrize("default", ["on", "off"])
async def test_a_commit_that_was_made_but_not_copied_is_unknown(
    lonely: Database,
    lonely_server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    default: str,
) -> None:
    """I14: neither one whose session was ended, nor one whose wait a person canceled. Also where
    the database's default is to wait for no one.
    """
    monkeypatch.setattr("forewarned.storage.postgres.commits.outcome.PATIENCE", 0.3)
    lonely.ask(f"ALTER DATABASE {lonely.name} SET synchronous_commit = {default}")
    async with running(lonely.url) as store:
        with missed_standby(lonely_server):
            for key, how in (("a", "pg_terminate_backend"), ("b", "pg_cancel_backend")):
                asked = asyncio.create_task(do(store.alone, add(key)))
                await until(lambda: waiting(lonely, "SyncRep"))
                for [pid] in waiting(lonely, "SyncRep"):
                    lonely.ask(f"SELECT {how}(%s)", pid)
                with pytest.raises(UnknownOutcomeError, match="not known whether"):
                    await asked
    assert store.alone.unknown_outcomes == 2


async def test_a_commit_that_was_made_and_copied_later_is_answered(
    lonely: Database, lonely_server: PostgresServer
) -> None:
    """I14, I23: committed once, though its connection was lost."""
    runs: list[str] = []

    def function(connection: Connection) -> None:
        runs.append("")
        add("once")(connection)

    async with running(lonely.url) as store:
        with missed_standby(lonely_server):
            asked = asyncio.create_task(do(store.alone, function))
            await until(lambda: waiting(lonely, "SyncRep"))
            for [pid] in waiting(lonely, "SyncRep"):
                lonely.ask("SELECT pg_terminate_backend(%s)", pid)
        await asked

    assert set(notes(lonely)) == {"once"}
    assert len(runs) == 1


async def test_a_store_that_is_down_is_unavailable_at_once_and_back_by_itself(
    lonely: Database, lonely_server: PostgresServer
) -> None:
    """I14."""
    async with running(lonely.url) as store:
        lonely_server.stop(immediate=True)
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                await do(store.alone, add("down"))
        lonely_server.start()
        async with asyncio.timeout(TOO_LONG):
            while True:
                with contextlib.suppress(StoreUnavailableError):
                    await do(store.alone, add("up"))
                    break
                await asyncio.sleep(0.05)

    assert set(notes(lonely)) == {"up"}
