"""Several nodes on one PostgreSQL, each a whole server in this process."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import EventSource, EventType
from forewarned.runtime import single_process
from forewarned.runtime.settings import load
from forewarned.runtime.single_process import Running
from forewarned.service.events.schedule import EventOrder
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from tests.builders import OPERATOR
from tests.metadata.fakes import Answer, Client, get
from tests.postgresql.databases import Database

WEB, REPORT = ResourceName("web"), ResourceName("report")
ADDRESSES = {WEB: "127.0.0.1", REPORT: "127.0.0.2"}
CLOSING = get(Connection="close")
NAME = get("/metadata/instance/compute/name?api-version=2021-02-01&format=text")


class Nodes:
    def __init__(self, running: list[Running]) -> None:
        self.running = running

    async def request(self, node: int, raw: bytes = CLOSING, vm: ResourceName = WEB) -> Answer:
        where = urlsplit(self.running[node].addresses.metadata_url)
        reader, writer = await asyncio.open_connection(
            where.hostname, where.port, local_addr=(ADDRESSES[vm], 0)
        )
        try:
            async with asyncio.timeout(30):
                return await Client(reader, writer).request(raw)
        finally:
            writer.close()

    async def incarnation(self, node: int, vm: ResourceName = WEB) -> int:
        answer = await self.request(node, vm=vm)
        assert answer.status == 200, answer
        return int(answer.headers["ETag"].strip('"'))

    async def apply(self, node: int, **addresses: str) -> None:
        vms = tuple(
            VirtualMachine(name=ResourceName(name), address=address)
            for name, address in addresses.items()
        )
        use_cases = self.running[node].application.use_cases
        await use_cases.fleet.apply(FleetPlan(vms=vms), by=OPERATOR)

    async def schedule(self, node: int, vm: ResourceName = WEB) -> str:
        order = EventOrder(type=EventType.FREEZE, resources=(vm,), source=EventSource.PLATFORM)
        scheduler = self.running[node].application.use_cases.scheduler
        [record] = await scheduler.schedule(order, by=OPERATOR)
        return record.event.id

    async def cancel(self, node: int, event_id: str) -> None:
        scheduler = self.running[node].application.use_cases.scheduler
        await scheduler.cancel(EventId(event_id), reason="a test", by=OPERATOR)


@contextmanager
def _log_as_it_was() -> Iterator[None]:
    """A server that starts takes the whole process's log over."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@asynccontextmanager
async def running_nodes(
    database: Database, folder: Path, number: int, **flags: str
) -> AsyncIterator[Nodes]:
    anywhere = "127.0.0.1:0"
    async with AsyncExitStack() as stack:
        stack.enter_context(_log_as_it_was())
        running = []
        for each in range(number):
            given = {
                "mode": "service",
                "store": database.url,
                "data": folder / str(each),
                "metadata": anywhere,
                "control": anywhere,
                "control_access": "open",
                "arm": "off",
                "rate_limit": "off",
                "workers": "0",
                **flags,
            }
            resolved = load(flags=given, environ={})
            running.append(await stack.enter_async_context(single_process.running(resolved)))
        nodes = Nodes(running)
        await nodes.apply(0, web=ADDRESSES[WEB], report=ADDRESSES[REPORT])
        yield nodes
