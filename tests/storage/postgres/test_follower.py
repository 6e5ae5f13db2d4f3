"""I25 with real threads and servers: every node hears of every commit, once and in order."""

import asyncio
import os
import resource
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing

import pytest

from forewarned.core.ids import ResourceName
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import News
from forewarned.storage.postgres.connection import Comparison, Connection, Position, is_direct
from forewarned.storage.postgres.follower import PRUNE, Follower
from tests.builders import a_node_record
from tests.postgresql.databases import Database
from tests.postgresql.pgbouncer import pgbouncer
from tests.postgresql.servers import PostgresServer, private_folder
from tests.storage.postgres.missed_standby import missed_standby
from tests.storage.postgres.raw_rows import BIND, NEW_SCOPE, add_scope

NEVER = 10**15
TOO_LONG = 20


class Follows:
    """A node's follower, and what it has been told."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        name: str,
        tick: int | None,
        is_in_order: Comparison = lambda _: True,
        *,
        prune_every: int = PRUNE,
    ) -> None:
        self.looks = 0
        self.found: list[str] = []
        self.bound: list[ResourceName] = []
        self.reads = 0
        ticks = {} if tick is None else {"tick": tick}
        self.follower = Follower(
            connect,
            a_node_record(name),
            hear=self._hear,
            read_anew=self._read_anew,
            compare=lambda: is_in_order,
            prune_every=prune_every,
            **ticks,
        )
        self._told = asyncio.Event()

    def _hear(self, news: News) -> None:
        self.looks += 1
        self.found += [page.scope_id for page in news.pages]
        self.bound += [place.name for place in news.bound]
        self._told.set()

    async def _read_anew(self) -> None:
        self.reads += 1
        self._told.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                self._told.clear()
                await self._told.wait()


@asynccontextmanager
async def following(
    database: Database,
    name: str = "a",
    *,
    tick: int | None = None,
    connect: Callable[[], Connection] | None = None,
) -> AsyncIterator[Follows]:
    follows = Follows(connect or database.connect, name, tick)
    async with follows.follower:
        follows.follower.go()
        yield follows


async def test_three_nodes_hear_of_every_commit_once_while_others_write(
    database: Database,
) -> None:
    """Eight writers at once, each holding half of its transactions open across others' commits."""

    def write(writer: int) -> None:
        with database.connect() as first, database.connect() as second:
            for number in range(20):
                first.execute(NEW_SCOPE, {"id": f"late{writer}.{number}"})
                second.execute(NEW_SCOPE, {"id": f"early{writer}.{number}"})
                second.commit()
                first.commit()

    async with (
        following(database, "a") as a,
        following(database, "b") as b,
        following(database, "c") as c,
    ):
        with database.connect() as throughout:
            throughout.execute("SELECT pg_current_xact_id()")
            writers = [threading.Thread(target=write, args=(each,)) for each in range(8)]
            for writer in writers:
                writer.start()
            for node in (a, b, c):
                await node.until(lambda node=node: len(node.found) >= 320)  # type: ignore[misc]
            for writer in writers:
                writer.join()
        for node in (a, b, c):
            await node.follower.caught_up()

    for node in (a, b, c):
        assert len(node.found) == len(set(node.found)) == 320


async def test_what_happened_between_opening_and_going_is_told(database: Database) -> None:
    follows = Follows(database.connect, "a", None)
    async with follows.follower:
        add_scope(database, "meanwhile")
        follows.follower.go()
        await follows.until(lambda: follows.found == ["meanwhile"])


async def test_a_connection_that_is_lost_costs_no_news(database: Database) -> None:
    """F6: neither the listener nor the follower is needed for what comes after them."""
    async with following(database) as node:
        await node.follower.caught_up()
        database.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        add_scope(database, "scope1")
        await node.until(lambda: node.found == ["scope1"])


async def test_a_follower_that_can_not_connect_tries_again_and_says_how_old_its_news_are(
    database: Database,
) -> None:
    refusals = 0
    is_gone = False

    def connect() -> Connection:
        nonlocal refusals
        if is_gone and refusals < 2:
            refusals += 1
            raise ConnectionRefusedError("no server")
        return database.connect()

    async with following(database, connect=connect) as node:
        await node.follower.caught_up()
        is_gone = True
        database.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        add_scope(database, "scope1")
        await node.until(lambda: node.found == ["scope1"])

        assert refusals == 2
        assert 0 < node.follower.lag < 30 * 10**9


async def test_a_follower_that_can_not_begin_says_that_the_store_is_unavailable(
    database: Database,
) -> None:
    """Where a node starts, so that its operator is not shown a traceback."""

    def connect() -> Connection:
        connection = database.connect()
        database.ask("SELECT pg_terminate_backend(%s, 10000)", connection.info.backend_pid)
        return connection

    with pytest.raises(
        StoreUnavailableError, match=r"closed the connection|terminating connection"
    ):
        async with following(database, connect=connect):
            pass


async def test_a_hint_makes_the_other_nodes_look_at_once(database: Database) -> None:
    async with (
        following(database, "a", tick=NEVER) as one,
        following(database, "b", tick=NEVER) as other,
    ):
        await one.follower.caught_up()
        await other.follower.caught_up()
        add_scope(database, "scope1")
        one.follower.hint()
        await other.until(lambda: other.found == ["scope1"])

        assert one.found == []


async def test_hints_come_through_in_a_burst_and_after_it(database: Database) -> None:
    async with (
        following(database, "a", tick=NEVER) as one,
        following(database, "b", tick=NEVER) as other,
    ):
        await other.follower.caught_up()
        for number in range(200):
            add_scope(database, f"scope{number}")
            one.follower.hint()
        await other.until(lambda: len(other.found) == 200)


async def test_a_caller_waits_for_a_look_that_began_after_its_commit(database: Database) -> None:
    async with following(database, tick=NEVER) as node:
        with database.connect() as connection:
            connection.execute(NEW_SCOPE, {"id": "scope1"})
            connection.execute(BIND, {"name": "vm1", "scope": "scope1", "address": "10.0.0.1"})
        await node.follower.caught_up()

        assert node.bound == ["vm1"]


async def test_after_a_new_epoch_everything_is_read_anew(database: Database) -> None:
    """I7: what was told before may have been lost, so the difference says nothing."""
    async with following(database) as node:
        await node.follower.caught_up()
        with database.connect() as connection:
            connection.execute("UPDATE store SET epoch = epoch + 1")
            connection.execute(NEW_SCOPE, {"id": "read"})
        await node.until(lambda: node.reads == 1)
        add_scope(database, "told")
        await node.until(lambda: node.found == ["told"])

        assert node.reads == 1


async def test_a_look_that_goes_back_leads_to_a_new_connection(database: Database) -> None:
    """I7: behind PgBouncer a connection may lead to a server that has taken over."""
    connections, looks = 0, 0

    def connect() -> Connection:
        nonlocal connections
        connections += 1
        return database.connect()

    def is_in_order(_: Position) -> bool:
        nonlocal looks
        looks += 1
        return looks != 2

    node = Follows(connect, "a", None, is_in_order)
    async with node.follower:
        node.follower.go()
        add_scope(database, "scope1")
        await node.until(lambda: node.found == ["scope1"] and looks > 2)

    # One to begin with, one to follow, and one more after the look that was out of order.
    assert connections == 3


async def test_a_node_says_that_it_is_alive(database: Database) -> None:
    async with following(database, "a") as one, following(database, "b") as other:
        for node in (one, other):
            # The second look comes after the first sign of life.
            await node.follower.caught_up()
            await node.follower.caught_up()
        alive = database.ask("SELECT id, name, version, speaks FROM nodes ORDER BY id")

    assert alive == [("a", "a", "1.0", 99), ("b", "b", "1.0", 99)]


async def test_a_node_that_was_upgraded_says_so(database: Database) -> None:
    """What another node's migration goes by, and what operators see."""
    database.ask("INSERT INTO nodes VALUES ('a', 'old-host', '0.9', 0, '', '', null, 0, 0)")
    async with following(database, "a") as node:
        await node.follower.caught_up()
        await node.follower.caught_up()

    assert database.ask("SELECT name, version, speaks FROM nodes") == [("a", "1.0", 99)]


async def test_a_node_ends_though_its_store_does_not_answer(database: Database) -> None:
    """A server that is stopped but not gone: its kernel still takes what is sent."""
    async with following(database) as node:
        await node.follower.caught_up()
        [(pid,)] = database.ask(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(TOO_LONG):
                await node.follower.__aexit__()
        finally:
            os.kill(pid, signal.SIGCONT)


async def test_a_node_with_thousands_of_connections_follows_the_store(database: Database) -> None:
    """`select` knows only descriptors up to 1023."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with closing(Descriptors(2000)):
        async with following(database) as node:
            add_scope(database, "scope1")
            await node.until(lambda: node.found == ["scope1"])
            add_scope(database, "scope2")
            await node.until(lambda: node.found == ["scope1", "scope2"])


class Descriptors:
    def __init__(self, number: int) -> None:
        self._open = [os.open(os.devnull, os.O_RDONLY) for _ in range(number)]

    def close(self) -> None:
        for each in self._open:
            os.close(each)


async def test_behind_pgbouncer_a_node_looks_without_hints(
    database: Database, postgres_server: PostgresServer
) -> None:
    with private_folder() as folder, pgbouncer(postgres_server, folder) as bouncer:

        def connect() -> Connection:
            return Database(url=bouncer.url(database.name), name=database.name).connect()

        async with following(database, connect=connect) as node:
            add_scope(database, "scope1")
            await node.until(lambda: node.found == ["scope1"])
            node.follower.hint()
            await node.follower.caught_up()
        with connect() as lent, database.connect() as own:
            assert not is_direct(lent)
            assert is_direct(own)


# --- removing old rows ---------------------------------------------------------------------------

LONG_GONE = "INSERT INTO nodes VALUES ('gone', 'gone', '0.9', 0, '', '', null, 0, 0)"


def gone(database: Database) -> list[str]:
    return [name for [name] in database.ask("SELECT name FROM nodes WHERE id = 'gone'")]


async def test_i24_a_node_that_removes_old_rows_waits_for_no_standby(
    lonely: Database, lonely_server: PostgresServer
) -> None:
    """Or it would hear of nothing for as long as the standby is gone."""
    lonely.ask(LONG_GONE)
    node = Follows(lonely.connect, "a", None, prune_every=0)
    with missed_standby(lonely_server):
        async with node.follower:
            node.follower.go()
            await node.until(lambda: node.looks > 2)

            assert gone(lonely) == []


async def test_i24_a_node_that_removes_old_rows_waits_for_no_other_session(
    database: Database,
) -> None:
    database.ask(LONG_GONE)
    node = Follows(database.connect, "a", None, prune_every=0)
    with database.connect() as other:
        other.execute("SELECT FROM nodes FOR UPDATE")
        async with node.follower:
            node.follower.go()
            await node.until(lambda: node.looks > 2)

            assert gone(database) == ["gone"]
