"""The ARM listener's app over the real use cases, a store in memory and a clock that stands still.

Whoever asks is let in as `ada`, unless a test says otherwise.
"""

import ipaddress
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import httpx2
import msgspec

from forewarned.control.arm.app import OPERATIONS, create_arm_app
from forewarned.control.arm.routes import Operation
from forewarned.control.arm.services import ArmServices
from forewarned.control.http.access import SignInError
from forewarned.core.ids import ResourceName
from forewarned.core.model import Actor
from forewarned.core.rules import Rules
from forewarned.security.identities import IssuedToken, Role
from forewarned.service.azure.context import AzureContext, Ids
from tests.bases import a_basis
from tests.builders import OPERATOR
from tests.control.control_api import ControlApi, control_api

SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
ROOT: Final = "https://localhost:8171"
VERSION: Final = "2024-11-01"
PEER: Final = "10.9.9.9"
ADDRESSES: Final = ipaddress.ip_network("10.2.0.0/16")
CONTEXT: Final = AzureContext(by=OPERATOR, rules=Rules(), ids=Ids("one"), address_range=ADDRESSES)


class Doorkeeper:
    """Lets everybody in, and remembers what for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, str, Role]] = []
        self.refusal: Exception | None = None
        self.vm: ResourceName | None = None
        """The VM whose token is shown; None for a person's."""

    async def admit(self, *, authorization: str | None, address: str, needs: Role) -> Actor:
        self.asked.append((authorization, address, needs))
        if self.refusal is not None:
            raise self.refusal
        return Actor(name=self.vm or "ada", address=address, resource=self.vm)

    async def sign_in(
        self, client_id: str, secret: str, *, audience: str, address: str
    ) -> IssuedToken:
        raise SignInError("no one signs in here")

    async def key_set(self) -> Mapping[str, object]:
        return {"keys": []}


class Asking:
    """An ARM listener, and the parts behind it that tests reach for."""

    def __init__(self, steered: ControlApi, table: tuple[Operation, ...]) -> None:
        basis = a_basis(steered.services.use_cases.rules, address_range=ADDRESSES)
        self.steered = steered
        self.door = Doorkeeper()
        self.services = ArmServices(
            use_cases=replace(steered.services.use_cases, basis=basis),
            access=self.door,
            subscription_id=SUBSCRIPTION,
            allowed_hosts=frozenset({"arm.example"}),
        )
        self.http = client(self.services, table)

    async def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> httpx2.Response:
        """With an api-version, unless the path brings its own query."""
        sent = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return await self.http.request(
            method,
            path if "?" in path else f"{path}?api-version={VERSION}",
            content=b"" if body is None else sent,
            headers={"Content-Type": "application/json"} | headers,
        )

    async def good(self, method: str, path: str, body: object = None) -> Any:  # JSON, or None
        response = await self.ask(method, path, body)
        assert response.is_success, response.text
        return response.json() if response.content else None

    async def refused(self, method: str, path: str, body: object = None) -> tuple[int, str, str]:
        """Status, code and message."""
        return refusal(await self.ask(method, path, body))


def client(services: ArmServices, table: tuple[Operation, ...]) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(create_arm_app(services, table), client=(PEER, 40_000))
    return httpx2.AsyncClient(transport=transport, base_url=ROOT)


def refusal(response: httpx2.Response) -> tuple[int, str, str]:
    assert response.headers["Content-Type"] == "application/json"
    answer = response.json()
    assert answer.keys() == {"error"}
    assert answer["error"].keys() <= {"code", "message", "target", "details"}
    assert answer["error"]["message"]
    return response.status_code, answer["error"]["code"], answer["error"]["message"]


@asynccontextmanager
async def asking(table: tuple[Operation, ...] = OPERATIONS) -> AsyncIterator[Asking]:
    async with control_api() as steered:
        asked = Asking(steered, table)
        async with asked.http:
            yield asked
