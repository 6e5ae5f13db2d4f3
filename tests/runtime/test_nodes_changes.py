"""Who watches or waits at one node hears of what happens at the others."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.postgresql.databases import Database
from tests.runtime.running_nodes import Nodes, running_nodes

PATIENCE = 30


@asynccontextmanager
async def asking(
    nodes: Nodes, node: int, path: str, *, last_id: str = "none"
) -> AsyncIterator[asyncio.StreamReader]:
    """The answer to a GET at the node's control listener."""
    where = urlsplit(nodes.running[node].addresses.control_url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    headers = f"Host: localhost\r\nConnection: close\r\nLast-Event-ID: {last_id}\r\n"
    writer.write(f"GET {path} HTTP/1.1\r\n{headers}\r\n".encode())
    try:
        async with asyncio.timeout(PATIENCE):
            yield reader
    finally:
        writer.close()


async def next_message(reader: asyncio.StreamReader) -> tuple[str, str, Any]:
    """Its id, its name and what it says."""
    await reader.readuntil(b"id: ")
    position, name = await reader.readline(), await reader.readline()
    shown = await reader.readline()
    told = json.loads(shown.removeprefix(b"data: "))
    return position.decode().strip(), name.decode().removeprefix("event: ").strip(), told


async def next_change(reader: asyncio.StreamReader) -> tuple[str, Any]:
    return (await next_message(reader))[1:]


async def test_a_watcher_at_one_node_hears_of_changes_at_all_each_once_and_in_order(
    database: Database, tmp_path: Path
) -> None:
    async with running_nodes(database, tmp_path, 3) as nodes, AsyncExitStack() as stack:
        # Events of VMs that don't read their document start at once.
        await nodes.request(2)
        await nodes.running[2].application.use_cases.engine.caught_up()
        reader = await stack.enter_async_context(asking(nodes, 2, "/v1/changes"))
        hello, _ = await next_change(reader)
        there = await nodes.schedule(0)
        _, first = await next_change(reader)
        here = await nodes.schedule(2)
        _, second = await next_change(reader)
        await nodes.cancel(1, there)
        _, third = await next_change(reader)

    assert hello == "hello"
    told = [(change["action"], change["event"]["event_id"]) for change in (first, second, third)]
    assert told == [("scheduled", there), ("scheduled", here), ("canceled", there)]
    assert third["event"]["ended_at"] is not None


async def test_a_watcher_that_goes_on_at_another_node_misses_nothing_and_hears_nothing_twice(
    database: Database, tmp_path: Path
) -> None:
    async with running_nodes(database, tmp_path, 2) as nodes:
        await nodes.request(0)
        await nodes.running[0].application.use_cases.engine.caught_up()
        async with asking(nodes, 0, "/v1/changes") as reader:
            await next_message(reader)
            events = [await nodes.schedule(0) for _ in range(3)]
            first = [await next_message(reader) for _ in range(2)]
        events.append(await nodes.schedule(1))
        # The second node may not have looked at the store since.
        async with asking(nodes, 1, "/v1/changes", last_id=first[-1][0]) as reader:
            _, _, hello = await next_message(reader)
            missed = [await next_message(reader) for _ in range(2)]
        async with asking(nodes, 0, "/v1/changes", last_id=missed[-1][0]) as reader:
            await next_message(reader)
            events.append(await nodes.schedule(1))
            live = await next_message(reader)

    assert (hello["resumed"], hello["lost"]) == (True, None)
    told = [told["event"]["event_id"] for _, _, told in (*first, *missed, live)]
    assert told == events


async def test_a_request_that_waits_at_one_node_is_answered_when_another_has_moved_the_event(
    database: Database, tmp_path: Path
) -> None:
    async with running_nodes(database, tmp_path, 2) as nodes:
        await nodes.request(0)
        event_id = await nodes.schedule(0)
        path = f"/v1/events/{event_id}?wait=completed&timeout=PT60S"
        async with asking(nodes, 1, path) as reader:
            answer = asyncio.create_task(reader.read())
            # Long enough for the wait to begin; if it has not, it finds the event canceled.
            done, _ = await asyncio.wait([answer], timeout=0.3)
            await nodes.cancel(0, event_id)
            shown = await answer

    assert not done
    assert shown.startswith(b"HTTP/1.1 200")
    assert b"canceled" in shown.lower()
