"""The service behind the metadata listener, in memory, and a client that speaks raw bytes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from forewarned.clock import VirtualClock
from forewarned.core.errors import UnknownEventError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Event, Resource, Scope
from forewarned.metadata.http.barrier import Barrier
from forewarned.metadata.http.request_cache import RequestCache
from forewarned.metadata.http.responses import Rendered, render
from forewarned.metadata.options import Options
from forewarned.metadata.server import MetadataServer
from forewarned.security.identities import Bearer, IssuedToken
from forewarned.service.azure.equipment import Equipment, Image, Interface
from forewarned.service.board import Board
from forewarned.service.faults import Faults
from forewarned.service.lifecycle.ports import Timer
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import About, Binding, Caller, PageContent, Profile, Saved
from forewarned.service.requests.watch import RequestWatch
from tests.builders import HOUR, NOON, a_resource, a_scope

NEWEST: Final = "2020-07-01"
EVENTS: Final = f"/metadata/scheduledevents?api-version={NEWEST}"
DATE: Final = b"Mon, 05 Jan 2026 12:00:00 GMT"


def a_vm(
    name: str = "vm1",
    address: str = "127.0.0.1",
    resource: Resource | None = None,
    **profile: object,
) -> About:
    usual = {
        "vm_id": "13f56399-bd52-4150-9748-7190aae1ff21",
        "subscription_id": "8d10da13-8125-4ba9-a717-bf7490507b3d",
        "resource_group": "group1",
        "location": "westeurope",
        "size": "Standard_D2s_v5",
        "computer_name": "host-of-vm1",
    }
    binding = Binding(
        name=ResourceName(name),
        scope_id=ScopeId("scope1"),
        address=address,
        profile=Profile(**{**usual, **profile}),  # type: ignore[arg-type]  # a test names what it likes
    )
    equipment = Equipment(
        image=Image(publisher="Canonical", offer="ubuntu-24_04-lts", sku="server", version="1.0.0"),
        interfaces=(Interface(mac_address="000D3A080004", private_address=address),),
    )
    return About(binding=binding, resource=resource or a_resource(name), equipment=equipment)


class FakeDirectory:
    def __init__(self) -> None:
        self.generation = 0
        self._addresses: dict[str, Caller] = {}
        self._names: dict[str, Caller] = {}

    def bind(self, name: str, address: str, scope: str) -> None:
        caller = Caller(name=ResourceName(name), scope_id=ScopeId(scope))
        self._addresses[address] = self._names[name.lower()] = caller
        self.generation += 1

    def unbind(self, address: str) -> None:
        del self._addresses[address]
        self.generation += 1

    def forget(self, name: str) -> None:
        caller = self._names.pop(name.lower())
        self._addresses = {at: each for at, each in self._addresses.items() if each != caller}
        self.generation += 1

    def by_address(self, address: str) -> Caller | None:
        return self._addresses.get(address)

    def by_name(self, name: str) -> Caller | None:
        return self._names.get(name.lower())

    def first(self) -> Caller | None:
        return next(iter(self._names.values()), None)


class FakeReader:
    def __init__(self, service: "FakeService") -> None:
        self._service = service
        self.seen_scopes: list[str] = []
        self.readers: list[str] = []
        self.activated: list[tuple[Caller, str]] = []
        self.vms: dict[str, About] = {"vm1": a_vm()}
        self.error: Exception | None = None

    def seen(self, scope_id: ScopeId, reader: ResourceName) -> None:
        self.seen_scopes.append(scope_id)
        self.readers.append(reader)

    async def activate(self, caller: Caller, *, address: str) -> None:
        if self.error is not None:
            raise self.error
        self.activated.append((caller, address))
        scope = self._service.scopes[caller.scope_id]
        self._service.show(replace(scope, active=True))

    async def about(self, name: ResourceName) -> About | None:
        return self.vms.get(name)


@dataclass
class FakeApprover:
    known: set[EventId] = field(default_factory=set)
    approved: list[tuple[tuple[EventId, ...], Caller, str]] = field(default_factory=list)
    error: Exception | None = None
    gate: asyncio.Event | None = None
    """What an approval waits for before it is durable; None for nothing."""

    async def approve(
        self, event_ids: Collection[EventId], *, caller: Caller, address: str
    ) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        for event_id in event_ids:
            if event_id not in self.known:
                raise UnknownEventError(event_id)
        self.approved.append((tuple(event_ids), caller, address))


@dataclass
class FakeIssuer:
    """Tokens that say in plain words whom they are for."""

    error: Exception | None = None

    async def issue(self, bearer: Bearer, *, audience: str) -> IssuedToken:
        if self.error is not None:
            raise self.error
        text = f"{bearer.subject}|{bearer.object_id}|{bearer.resource_path}|{audience}"
        return IssuedToken(text=text, not_before=NOON, expires_at=NOON + HOUR)


class FakeReadiness:
    """Of any event that somebody's scope is known to have."""

    def __init__(self) -> None:
        self.events: dict[EventId, str] = {}
        """The scope of each."""
        self.kept: dict[tuple[EventId, ResourceName], ReadinessReport] = {}
        self.error: Exception | None = None

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]:
        said = await self.reports(event_id, caller=caller)
        report = ReadinessReport(resource=caller.name, standing=standing, heard_at=NOON)
        self.kept[event_id, caller.name] = report
        return (*(each for each in said if each.resource != caller.name), report)

    async def reports(self, event_id: EventId, *, caller: Caller) -> tuple[ReadinessReport, ...]:
        if self.error is not None:
            raise self.error
        if self.events.get(event_id) != caller.scope_id:
            raise UnknownEventError(event_id)
        return tuple(report for (of, _), report in self.kept.items() if of == event_id)


class FakeClock:
    """An instant, set by hand. For code that asks the time and sets no timers."""

    def __init__(self, instant: datetime) -> None:
        self.instant = instant

    def now(self) -> datetime:
        return self.instant

    def at(self, instant: datetime, call: Callable[[], Awaitable[None]]) -> Timer:
        raise NotImplementedError

    def watch(self, watcher: Callable[[], None]) -> None:
        """It is never moved, only set."""


class Stopwatch:
    """Time by which deadlines and rates are measured, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class FakeService:
    """One VM, vm1, at 127.0.0.1, alone in the active scope scope1, whose document is empty."""

    def __init__(self) -> None:
        self.board: Board[Rendered] = Board(render)
        self.directory = FakeDirectory()
        self.reader = FakeReader(self)
        self.approver = FakeApprover()
        self.issuer = FakeIssuer()
        self.readiness = FakeReadiness()
        self.faults = Faults()
        self.clock = VirtualClock(NOON, speed=0)
        self.stopwatch = Stopwatch()
        self.scopes: dict[str, Scope] = {}
        self.revision = 0
        self.add("vm1", "127.0.0.1", "scope1")

    def add(self, name: str, address: str, scope: str) -> None:
        self.directory.bind(name, address, scope)
        if scope not in self.scopes:
            self.show(a_scope(id=scope))

    def show(self, scope: Scope) -> None:
        self.revision += 1
        self.scopes[scope.id] = scope
        self.board.show(PageContent.of(Saved(scope=scope, revision=self.revision)))

    def publish(self, *events: Event, incarnation: int = 2, scope: str = "scope1") -> None:
        self.approver.known |= {event.id for event in events}
        self.show(a_scope(*events, id=scope, incarnation=incarnation))

    @asynccontextmanager
    async def serving(
        self,
        options: Options | None = None,
        *,
        request_cache: RequestCache | None = None,
        barrier: Barrier | None = None,
        requests: RequestWatch | None = None,
    ) -> AsyncIterator["Site"]:
        server = MetadataServer(
            board=self.board,
            directory=self.directory,
            reader=self.reader,
            approver=self.approver,
            clock=self.clock,
            options=replace(options or Options(rate_limit=None), port=0),
            request_cache=request_cache,
            monotonic=self.stopwatch,
            issuer=self.issuer,
            readiness=self.readiness,
            faults=self.faults,
            barrier=barrier,
            requests=requests,
        )
        async with server:
            site = Site(server)
            try:
                yield site
            finally:
                site.close()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    head: bytes


class Client:
    """One connection, asking in raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def receive(self, *, to_head: bool = False) -> Answer:
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").splitlines()[:-1]
        headers = dict(line.split(": ", 1) for line in lines)
        length = 0 if to_head else int(headers.get("Content-Length", "0"))
        body = await self.reader.readexactly(length)
        return Answer(int(first.split()[1]), headers, body, head)

    async def request(self, raw: bytes) -> Answer:
        await self.send(raw)
        return await self.receive()

    async def get(self, target: str = EVENTS, **headers: str) -> Answer:
        return await self.request(get(target, **headers))

    async def post(self, body: str | bytes, target: str = EVENTS, **headers: str) -> Answer:
        return await self.request(post(body, target, **headers))

    @property
    def has_answer(self) -> bool:
        """Whether anything has come that was not received yet."""
        # A StreamReader has no other way to say so.
        return bool(self.reader._buffer)  # type: ignore[attr-defined]

    async def rest(self) -> bytes:
        """What comes until the server closes."""
        return await self.reader.read()


class Site:
    """A listener that serves, and connections to it that end with the test."""

    def __init__(self, server: MetadataServer) -> None:
        self.server = server
        self._clients: list[Client] = []

    async def connect(self, address: str = "127.0.0.1") -> Client:
        reader, writer = await asyncio.open_connection(
            *self.server.address, local_addr=(address, 0)
        )
        client = Client(reader, writer)
        self._clients.append(client)
        return client

    async def get(self, target: str = EVENTS, *, address: str = "127.0.0.1") -> Answer:
        return await (await self.connect(address)).get(target)

    async def request(self, raw: bytes, *, address: str = "127.0.0.1") -> Answer:
        return await (await self.connect(address)).request(raw)

    def close(self) -> None:
        for client in self._clients:
            client.writer.transport.abort()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110  # the server has no reason to say when
        await asyncio.sleep(0)


async def turns() -> None:
    """Let the server read what was sent: loopback delivers at once, so a few turns are enough."""
    for _ in range(8):
        await asyncio.sleep(0)


def get(target: str = EVENTS, method: str = "GET", **headers: str) -> bytes:
    """A request with the headers every client sends. An underscore stands for a hyphen."""
    fields = {"Host": "169.254.169.254", "Metadata": "true"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


def post(body: str | bytes, target: str = EVENTS, **headers: str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    return get(target, "POST", **{"Content-Length": str(len(content)), **headers}) + content
