"""S12: who may call, as commands change it in the database."""

import asyncio

from forewarned.config.values import DatabaseUrl
from forewarned.security.identities import Principal, Role
from forewarned.storage.postgres.nodes import principals
from tests.postgresql.databases import Database
from tests.postgresql.servers import PostgresServer
from tests.storage.postgres.commits.plain_functions import until
from tests.storage.postgres.missed_standby import missed_standby, waiting

ALICE = Principal(name="alice", role=Role.ADMIN, token_sha256="a" * 64)


def add(url: str) -> None:
    with principals.edited(DatabaseUrl(url)) as known:
        known.append(ALICE)


def revoke(url: str) -> None:
    with principals.edited(DatabaseUrl(url)) as known:
        known.clear()


async def test_a_revocation_is_confirmed_only_once_it_is_durable(
    lonely: Database, lonely_server: PostgresServer
) -> None:
    """Also where the database's default is to confirm what is in memory only."""
    add(lonely.url)
    lonely.ask(f"ALTER DATABASE {lonely.name} SET synchronous_commit = off")
    with missed_standby(lonely_server):
        revoking = asyncio.create_task(asyncio.to_thread(revoke, lonely.url))
        await until(lambda: revoking.done() or waiting(lonely, "SyncRep"))
        is_confirmed = revoking.done()
    await revoking

    assert not is_confirmed
    assert principals.read(DatabaseUrl(lonely.url)) == ()
