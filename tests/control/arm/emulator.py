"""The whole product below its sockets: ARM's app, the engine, simulated work and what VMs read.

The clock stands still until a test moves it; what is due at once is done before the next request.
"""

import ipaddress
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from forewarned.clock import VirtualClock
from forewarned.control.arm.app import OPERATIONS
from forewarned.control.arm.services import ArmServices
from forewarned.core import lifecycle
from forewarned.core.model import Event, EventType
from forewarned.core.rules import Rules
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.lifecycle.assignment import simulated
from forewarned.service.ports import Store
from forewarned.service.records import Binding, Caller
from forewarned.storage import SqliteStore
from tests.bases import a_basis
from tests.builders import NOON
from tests.control.arm.asking import ROOT, SUBSCRIPTION, VERSION, Doorkeeper, client, refusal
from tests.stateful.stack import TIMINGS

GROUP: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg1"
COMPUTE: Final = f"{GROUP}/providers/Microsoft.Compute"
ADDRESSES: Final = ipaddress.ip_network("10.2.0.0/16")


class Emulator:
    def __init__(
        self,
        file: Path | None,
        *,
        rules: Rules,
        over: Callable[[Store], Store] = lambda store: store,
    ) -> None:
        """`file` is the database; None keeps all of it in memory. `over` wraps the store."""
        self._over = over
        self._rules = rules
        self._file = file
        self._basis = a_basis(rules, address_range=ADDRESSES)
        self._opened = AsyncExitStack()
        self.clock = VirtualClock(NOON, speed=0)
        self.door = Doorkeeper()

    # --- its life --------------------------------------------------------------------------------

    async def start(self) -> None:
        store = await self._open_store()
        self.documents = BoardDelivery()
        application = Application(store, self.clock, self._basis, self.documents, timings=TIMINGS)
        await self._opened.enter_async_context(application)
        self.use_cases = application.use_cases
        self.services = ArmServices(
            use_cases=self.use_cases,
            access=self.door,
            subscription_id=SUBSCRIPTION,
        )
        self.http = await self._opened.enter_async_context(client(self.services, OPERATIONS))

    async def stop(self) -> None:
        await self._opened.aclose()

    async def restart(self) -> None:
        """Stop, and start again with nothing but the database."""
        assert self._file is not None
        await self.stop()
        self.clock = VirtualClock(self.clock.now(), speed=0)
        await self.start()

    async def _open_store(self) -> Store:
        next_wake = partial(lifecycle.next_wake, rules=self._rules)
        store = SqliteStore(self._file, self.clock, next_wake=next_wake, actuator_of=simulated)
        return self._over(await self._opened.enter_async_context(store))

    # --- what clients do -------------------------------------------------------------------------

    async def ask(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """With an api-version, unless the path brings its own query."""
        return await self.send(method, path, b"" if body is None else msgspec.json.encode(body))

    async def send(self, method: str, path: str, content: bytes) -> httpx2.Response:
        """As `ask`, with a body that need not be JSON."""
        response = await self.http.request(
            method,
            path if "?" in path else f"{path}?api-version={VERSION}",
            content=content,
            headers={"Content-Type": "application/json"},
        )
        await self.step(timedelta(0))
        return response

    async def good(self, method: str, path: str, body: object = None) -> Any:  # JSON, or None
        response = await self.ask(method, path, body)
        assert response.is_success, response.text
        return response.json() if response.content else None

    async def begin(self, method: str, path: str, body: object = None) -> str:
        """Something that takes its time: where to look how far it is."""
        response = await self.ask(method, path, body)
        assert response.is_success, response.text
        url = response.headers["Azure-AsyncOperation"]
        assert url.startswith(ROOT)
        return str(url.removeprefix(ROOT))

    async def status(self, operation: str) -> str:
        return str((await self.good("GET", operation))["status"])

    async def refused(self, method: str, path: str, body: object = None) -> tuple[int, str, str]:
        """Status, code and message."""
        return refusal(await self.ask(method, path, body))

    # --- time, and what VMs do -------------------------------------------------------------------

    async def step(self, by: timedelta) -> None:
        await self.clock.step(by)

    async def read(self, name: str) -> tuple[Event, ...]:
        """A VM reads its document, which switches its scope on."""
        caller = await self._caller(name)
        await self.use_cases.activation.activate(caller, address="10.0.0.4")
        page = self.documents.board.page(caller.scope_id)
        assert page is not None
        return page.document.events

    async def approve(self, name: str, *events: Event) -> None:
        ids = [event.id for event in events]
        caller = await self._caller(name)
        await self.use_cases.approvals.approve(ids, caller=caller, address="10.0.0.4")
        await self.step(timedelta(0))

    async def binding(self, name: str) -> Binding | None:
        return await self.use_cases.engine.ask(lambda snapshot: snapshot.binding(name))

    async def _caller(self, name: str) -> Caller:
        binding = await self.binding(name)
        assert binding is not None, name
        return Caller(name=binding.name, scope_id=binding.scope_id)


def kinds(events: tuple[Event, ...]) -> list[tuple[EventType, tuple[str, ...]]]:
    return [(event.type, event.resources) for event in events]


@asynccontextmanager
async def emulator(
    file: Path | None = None,
    *,
    rules: Rules = Rules(),  # noqa: B008  # frozen
    over: Callable[[Store], Store] = lambda store: store,
) -> AsyncIterator[Emulator]:
    """With the resource group rg1, in the location local."""
    running = Emulator(file, rules=rules, over=over)
    await running.start()
    try:
        await running.good("PUT", GROUP, {"location": "local"})
        yield running
    finally:
        await running.stop()
