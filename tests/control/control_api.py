"""The control API over the real use cases, a store in memory and a clock that stands still."""

import ipaddress
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

import httpx2
import msgspec
from starlette.applications import Starlette
from typing_extensions import override

from forewarned.clock import SystemClock, VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.control.v1.app import create_app
from forewarned.control.v1.changes import Changes
from forewarned.control.v1.services import Services
from forewarned.core import lifecycle
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.rules import Rules
from forewarned.core.tasks import ActuatorOf
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.faults import Faults
from forewarned.service.fleet.reset import Reset
from forewarned.service.lifecycle.assignment import simulated
from forewarned.service.nodes import Nodes
from forewarned.service.ports import Listener, Snapshot, Transaction
from forewarned.service.records import Caller, Commit
from forewarned.service.use_cases import UseCases
from forewarned.storage import SqliteStore
from tests.bases import a_basis
from tests.builders import NOON, a_node_record

T = TypeVar("T")

FLEET: Final[dict[str, Any]] = {
    "location": "here",
    "resource_group": "shop",
    "vms": [
        {"name": "web", "address": "10.0.0.1", "host": "rack1", "tags": {"tier": "front"}},
        {"name": "report", "address": "10.0.0.2", "host": "rack1"},
        {"name": "cheap", "address": "10.0.0.3", "host": "rack2", "priority": "Spot"},
    ],
    "availability_sets": [
        {"name": "db", "vms": ["db-0", "db-1", "db-2"], "update_domains": 2},
    ],
    "scale_sets": [{"name": "api", "capacity": 2, "terminate_notification": "5m"}],
}
"""A VM with a neighbour in another scope, a Spot VM, a set of two update domains, a scale set."""


class Breakable(SqliteStore):
    """A store that can be made unavailable."""

    is_down = False
    reads_left: int | None = None
    """How often it is read before it is made unavailable, if that is to be."""

    @override
    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        self._refuse_if_down()
        return await super().transact(function, touching=touching, tell=tell)

    @override
    async def read(self, work: Callable[[Snapshot], T]) -> T:
        if self.reads_left is not None:
            self.is_down = self.reads_left <= 0
            self.reads_left -= 1
        self._refuse_if_down()
        return await super().read(work)

    def _refuse_if_down(self) -> None:
        if self.is_down:
            raise StoreUnavailableError("the disk is full")


class ControlApi:
    """A control listener, and the parts behind it that tests reach for."""

    def __init__(self, store: Breakable, services: Services) -> None:
        self.store = store
        self.services = services
        self.activation = services.use_cases.activation
        self.app: Starlette = create_app(services)
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(
                self.app, raise_app_exceptions=False, client=("10.9.9.9", 40_000)
            ),
            base_url="http://127.0.0.1:8170",
        )

    async def get(self, path: str, **query: str | int) -> Any:  # JSON, which tests look into
        return self._good(await self.http.get(path, params=query or None))

    async def post(self, path: str, body: object = None, **headers: str) -> Any:
        sent = b"" if body is None else msgspec.json.encode(body)
        return self._good(await self.http.post(path, content=sent, headers=headers))

    async def put_fleet(self, fleet: object, **query: str) -> Any:
        sent = msgspec.json.encode(fleet)
        return self._good(await self.http.put("/v1/fleet", content=sent, params=query or None))

    async def schedule(self, type_: str, *resources: str, **more: object) -> Any:
        """The one event that this schedules."""
        answer = await self.post("/v1/events", {"type": type_, "resources": resources, **more})
        [event] = answer["events"]
        return event

    async def switch_on(self, *names: str) -> None:
        """Let these VMs read their documents, so that what befalls them is announced."""
        for name in names:
            about = await self.activation.about(ResourceName(name))
            assert about is not None
            caller = Caller(name=about.binding.name, scope_id=about.binding.scope_id)
            await self.activation.activate(caller, address=about.binding.address)

    async def refused(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status, and what the one shape of an error says."""
        sent = body if isinstance(body, bytes) else msgspec.json.encode(body)
        content = b"" if body is None else sent
        return refusal(await self.http.request(method, path, content=content))

    @staticmethod
    def _good(response: httpx2.Response) -> Any:
        assert response.is_success, response.text
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Cache-Control"] == "no-store"
        return response.json()


def refusal(response: httpx2.Response) -> tuple[int, Any]:
    assert response.headers["Content-Type"] == "application/json"
    answer = response.json()
    assert answer.keys() == {"error"}
    assert answer["error"].keys() == {"code", "message", "field"}
    assert answer["error"]["message"]
    return response.status_code, answer["error"]


@asynccontextmanager
async def control_api(
    *,
    clock: VirtualClock | SystemClock | None = None,
    rules: Rules = Rules(short_notice_allowed=True),  # noqa: B008  # frozen
    changes: Changes | None = None,
    actuator_of: ActuatorOf = simulated,
) -> AsyncIterator[ControlApi]:
    clock = clock or VirtualClock(NOON, speed=0)
    next_wake = partial(lifecycle.next_wake, rules=rules)
    store = Breakable(None, clock, next_wake=next_wake, actuator_of=actuator_of)
    basis = a_basis(rules, address_range=ipaddress.ip_network("10.1.0.0/16"))
    application = Application(store, clock, basis, BoardDelivery(), faults=Faults())
    steered = ControlApi(store, _services(application.use_cases, changes or Changes()))
    async with store, steered.http:
        await steered.put_fleet(FLEET)
        yield steered


def _services(use_cases: UseCases, changes: Changes) -> Services:
    return Services(
        use_cases=use_cases,
        reset=Reset(
            engine=use_cases.engine,
            activation=use_cases.activation,
            clock_control=use_cases.clock_control,
            faults=use_cases.faults,
            address_range=use_cases.basis.address_range,
            plan=parse(FLEET),
        ),
        nodes=Nodes(a_node_record(), wall_clock=lambda: NOON),
        mode="emulator",
        metadata_url="http://127.0.0.1:8169",
        settings_listing=[("mode", "emulator", "default"), ("clock", "paused", "--clock")],
        allowed_hosts=frozenset({"forewarned.example"}),
        changes=changes,
    )


def later(**span: int) -> str:
    """An instant of the day the tests play on, as the API writes it."""
    return (NOON + timedelta(**span)).isoformat().replace("+00:00", "Z")
