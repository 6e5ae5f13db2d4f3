"""Nodes of two versions on one database, and nodes that reach it through PgBouncer."""

import asyncio
from pathlib import Path

import pytest

from forewarned.storage.postgres import migrate
from forewarned.storage.postgres.migrate import Migration
from tests.postgresql.databases import Database
from tests.postgresql.pgbouncer import pgbouncer
from tests.postgresql.servers import PostgresServer, private_folder
from tests.runtime.running_nodes import running_nodes

NEXT = migrate.migrations()[-1].number + 1
STEP = Migration(
    number=NEXT,
    sql=b"""
        CREATE TABLE next_versions_own (id bigint PRIMARY KEY);
        ALTER TABLE events ADD COLUMN next_versions_own text;
        ALTER TABLE scopes ADD COLUMN next_versions_own bigint NOT NULL DEFAULT 7;
        ALTER TABLE resources ADD COLUMN next_versions_own text;
        ALTER TABLE history ADD COLUMN next_versions_own text;
    """,
)


async def test_nodes_of_the_version_before_go_on_while_the_next_one_migrates_and_joins(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step only adds. I7 and I23 hold for clients of both."""
    async with running_nodes(database, tmp_path / "old", 1) as old:
        await old.request(0)
        is_over = asyncio.Event()

        async def change() -> list[str]:
            events = [await old.schedule(0)]
            while not is_over.is_set():
                events.append(await old.schedule(0))
            return events

        changing = asyncio.create_task(change())
        steps = [*migrate.migrations(), STEP]
        monkeypatch.setattr(migrate, "migrations", lambda: steps)
        async with running_nodes(database, tmp_path / "new", 1) as new:
            is_over.set()
            events = await changing
            events.append(await new.schedule(0))
            events.append(await old.schedule(0))
            seen = [await new.incarnation(0), await old.incarnation(0), await new.incarnation(0)]
            documents = [(await nodes.request(0)).body.decode() for nodes in (old, new)]

    assert database.ask("SELECT schema, oldest_code FROM store") == [(NEXT, NEXT - 1)]
    assert all(event_id in document for document in documents for event_id in events)
    assert seen == [seen[0]] * 3
    assert sorted(database.ask("SELECT speaks FROM nodes")) == [(NEXT - 1,), (NEXT,)]


async def test_nodes_behind_pgbouncer_serve_and_hear_of_each_other_without_listening(
    database: Database, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """I7, I25."""
    with private_folder() as folder, pgbouncer(postgres_server, folder) as bouncer:
        url = bouncer.url(database.name)
        async with running_nodes(database, tmp_path, 2, store=url, balancing="any") as nodes:
            await nodes.request(0)
            before = await nodes.incarnation(1)
            await nodes.schedule(0)
            seen = [await nodes.incarnation(1), await nodes.incarnation(0)]

    assert seen == [before + 1] * 2
