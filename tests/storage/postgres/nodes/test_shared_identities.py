"""S12, S17: who may call the nodes of one store, and whose signatures hold at them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.config.values import DatabaseUrl
from forewarned.security.identities import BadTokenError, Bearer, Principal, Role
from forewarned.security.signing_keys import SigningKeys
from forewarned.security.tokens import Tokens
from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.errors import CannotOpenError
from forewarned.storage.postgres.commits.session import Connector
from forewarned.storage.postgres.nodes import principals
from forewarned.storage.postgres.nodes.shared_identities import KEPT, OLDEST, SharedIdentities
from forewarned.storage.postgres.nodes.side_connection import SideConnection
from forewarned.storage.postgres.url import target
from tests.builders import NOON, SECOND
from tests.postgresql.databases import Database

ALICE = Principal(name="alice", role=Role.ADMIN, token_sha256="a" * 64, expires_at=NOON)
CI = Principal(name="ci", role=Role.READER, client_id="7-7", secret_sha256="b" * 64)
WEB = Bearer(subject="web", object_id="1", resource_path="/web")
BY_HAND = timedelta(days=1)
"""A test looks when it wants to."""


class Stopwatch:
    def __init__(self) -> None:
        self.seconds = timedelta(seconds=1000)

    def __call__(self) -> timedelta:
        return self.seconds


@asynccontextmanager
async def a_node(
    database: Database, name: str, now: Stopwatch | None = None, *, every: timedelta = BY_HAND
) -> AsyncIterator[SharedIdentities]:
    connector = Connector(target(DatabaseUrl(database.url)))
    async with (
        SideConnection(connector) as side,
        SharedIdentities(side, name, now=now or Stopwatch(), every=every) as node,
    ):
        yield node


def edit(database: Database, *people: Principal) -> None:
    with principals.edited(DatabaseUrl(database.url)) as known:
        known[:] = people


async def a_key(folder: Path, node: SharedIdentities) -> SigningKeys:
    folder.mkdir()  # noqa: ASYNC240  # a moment
    keys = SigningKeys(folder, node)
    await keys.prepare()
    return keys


async def test_what_is_written_is_read_by_all(database: Database) -> None:
    async with a_node(database, "a") as a, a_node(database, "b") as b:
        edit(database, ALICE, CI)
        for node in (a, b):
            await node.look()
            assert list(node.current()) == [ALICE, CI]
        edit(database, CI)
        await b.look()
        assert list(b.current()) == [CI]


async def test_a_node_looks_by_itself(database: Database) -> None:
    async with a_node(database, "a", every=timedelta(milliseconds=1)) as node:
        edit(database, ALICE)
        async with asyncio.timeout(30):
            while not node.current():  # noqa: ASYNC110  # it has no reason to tell a test
                await asyncio.sleep(0.005)


async def test_a_node_that_can_not_ask_admits_nobody_and_says_why(database: Database) -> None:
    edit(database, ALICE)
    now = Stopwatch()
    async with a_node(database, "a", now) as node:
        now.seconds += OLDEST - SECOND
        assert list(node.current()) == [ALICE]
        now.seconds += SECOND
        with pytest.raises(StoreUnavailableError, match="last reached the store 5 s ago"):
            node.current()
        await node.look()
        assert list(node.current()) == [ALICE]


async def test_a_role_of_a_later_version_admits_nobody(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    edit(database, ALICE)
    async with a_node(database, "a") as node:
        database.ask("UPDATE principals SET role = 'emperor'")
        await node.look()

        assert list(node.current()) == []
    assert "all tokens are refused" in caplog.text


async def test_a_connection_that_is_lost_is_opened_again(database: Database) -> None:
    edit(database, ALICE)
    async with a_node(database, "a") as node:
        database.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await node.look()

        assert list(node.current()) == [ALICE]


def test_an_edit_that_fails_changes_nothing(database: Database) -> None:
    edit(database, ALICE)

    with pytest.raises(CannotOpenError):
        edit(database, ALICE, CI, CI)

    assert database.ask("SELECT name FROM principals") == [("alice",)]


async def test_a_token_of_one_node_is_good_at_another_and_both_show_both_keys(
    database: Database, tmp_path: Path
) -> None:
    """I: `az` signs in at one node, and works at any."""
    async with a_node(database, "a") as a, a_node(database, "b") as b:
        keys_a = await a_key(tmp_path / "a", a)
        keys_b = await a_key(tmp_path / "b", b)
        token = await Tokens(keys_a).issue(WEB, audience="x")

        # The second node looked when it told its own key.
        assert (await Tokens(keys_b).read(token.text)).bearer == WEB
        await a.look()
        sets = [await keys.key_set() for keys in (keys_a, keys_b)]
        kids = [{key["kid"] for key in each["keys"]} for each in sets]  # type: ignore[attr-defined]  # JSON
        assert kids[0] == kids[1]
        assert len(kids[0]) == 2
        assert "PRIVATE" not in str(database.ask("SELECT * FROM signing_keys"))


async def test_a_key_that_is_not_known_yet_is_waited_for_with_one_look(
    database: Database, tmp_path: Path
) -> None:
    async with a_node(database, "a") as a, a_node(database, "b") as b:
        keys_b = await a_key(tmp_path / "b", b)
        keys_a = await a_key(tmp_path / "a", a)
        token = await Tokens(keys_a).issue(WEB, audience="x")

        readers = [asyncio.create_task(Tokens(keys_b).read(token.text)) for _ in range(5)]
        await asyncio.sleep(0)
        while b._next_look is None:  # noqa: ASYNC110  # until they wait
            await asyncio.sleep(0)
        await b.look()

        assert [each.bearer for each in await asyncio.gather(*readers)] == [WEB] * 5


async def test_a_key_that_no_node_has_is_refused(database: Database, tmp_path: Path) -> None:
    async with a_node(database, "a", every=timedelta(milliseconds=10)) as a:
        keys = await a_key(tmp_path / "a", a)
        (tmp_path / "foreign").mkdir()
        foreign = SigningKeys(tmp_path / "foreign")
        await foreign.prepare()
        token = await Tokens(foreign).issue(WEB, audience="x")

        with pytest.raises(BadTokenError, match="not issued by this server"):
            await Tokens(keys).read(token.text)


@pytest.mark.parametrize(
    "column", ['{"kty":"oct","k":"AAAA"}', '{"kty":"EC"}', '{"kty":"RSA","n":"AQ","e":"AQ"}']
)
async def test_what_is_no_key_of_ours_checks_nothing(
    database: Database, tmp_path: Path, column: str
) -> None:
    """A shared secret in the table would let everyone who reads it sign."""
    async with a_node(database, "a") as a, a_node(database, "b") as b:
        keys_a = await a_key(tmp_path / "a", a)
        token = await Tokens(keys_a).issue(WEB, audience="x")
        kid = database.ask("SELECT kid FROM signing_keys")[0][0]
        database.ask(
            "UPDATE signing_keys SET public_key = %s", column.replace("{", f'{{"kid":"{kid}",')
        )
        keys_b = await a_key(tmp_path / "b", b)

        with pytest.raises(BadTokenError):
            await Tokens(keys_b).read(token.text)


async def test_keys_of_nodes_that_are_gone_are_forgotten_and_a_living_nodes_key_stays(
    database: Database, tmp_path: Path
) -> None:
    now = Stopwatch()
    async with a_node(database, "a", now) as a, a_node(database, "b") as b:
        await a_key(tmp_path / "a", a)
        await a_key(tmp_path / "b", b)
        age = KEPT // timedelta(microseconds=1) + 1_000_000
        database.ask("UPDATE signing_keys SET seen_at = seen_at - %s", age)
        await a.look()
        assert len(a.known()) == 2, "not at each look"

        now.seconds += timedelta(minutes=1)
        await a.look()

        assert database.ask("SELECT node FROM signing_keys") == [("a",)]
        assert len(a.known()) == 1
