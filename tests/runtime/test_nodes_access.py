"""S12 with two nodes: who is admitted at one is at the other, and no longer than there."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.cli.served import invoke
from tests.postgresql.databases import Database
from tests.runtime.running_nodes import Nodes, running_nodes


@pytest.fixture
async def nodes(anyio_backend: object, database: Database, tmp_path: Path) -> AsyncIterator[Nodes]:
    async with running_nodes(database, tmp_path, 2, control_access="token") as made:
        yield made


def token(database: Database, *words: str) -> str:
    done = invoke("token", *words, "--store", database.url)
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


async def status(nodes: Nodes, node: int, secret: str) -> int:
    async with httpx2.AsyncClient() as client:
        answer = await client.get(
            f"{nodes.running[node].addresses.control_url}/v1/events",
            headers={"Authorization": f"Bearer {secret}"},
        )
        return answer.status_code


async def becomes(nodes: Nodes, node: int, secret: str, wanted: int) -> None:
    """Within the two seconds that a node may take, and the time that a busy machine does."""
    async with asyncio.timeout(20):
        while await status(nodes, node, secret) != wanted:  # noqa: ASYNC110  # no one tells
            await asyncio.sleep(0.05)


async def test_a_token_is_created_once_and_revoked_everywhere(
    nodes: Nodes, database: Database
) -> None:
    secret = await asyncio.to_thread(token, database, "create", "alice", "--role", "reader")
    for node in (0, 1):
        await becomes(nodes, node, secret, 200)
    assert "alice" in await asyncio.to_thread(token, database, "list")

    await asyncio.to_thread(token, database, "revoke", "alice")

    for node in (0, 1):
        await becomes(nodes, node, secret, 401)


async def test_a_session_begun_at_one_node_is_good_at_the_other_until_it_is_ended_at_either(
    nodes: Nodes, database: Database
) -> None:
    secret = await asyncio.to_thread(token, database, "create", "alice", "--role", "reader")
    a, b = (node.addresses.control_url for node in nodes.running)
    await becomes(nodes, 0, secret, 200)
    await becomes(nodes, 1, secret, 200)

    # As behind one name: a browser would send the cookie to both.
    async with httpx2.AsyncClient() as client:
        signed_in = await client.post(f"{a}/sign-in", data={"token": secret})
        cookie = signed_in.headers["Set-Cookie"].partition(";")[0]
        client.cookies.clear()
        client.headers["Cookie"] = cookie
        shown = [(await client.get(f"{node}/")).status_code for node in (a, b)]
        await client.post(f"{b}/sign-out")
        after = [(await client.get(f"{node}/")).status_code for node in (a, b)]

    assert shown == [200, 200]
    assert after == [303, 303]
