"""Requests to Nova, with a token of Keystone for an application credential.

Invariant (S16): the secret goes to the identity service alone, and tokens go to Nova alone: no
proxy, no redirect.
"""

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from forewarned import __version__
from forewarned.actuators.driver import DriverError
from forewarned.actuators.openstack.failures import cloud_error
from forewarned.actuators.openstack.wire import TokenBody
from forewarned.config.durations import format_duration
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Answer, Request, secret, send
from forewarned.targets.urls import origin

MICROVERSION: Final = "2.84"
"""Of Nova's API: that of the release Ussuri, of 2020."""
_PATIENCE: Final = timedelta(seconds=30)
_VERSION: Final = "/v2.1"

T = TypeVar("T")


class Interface(StrEnum):
    """Which of Nova's addresses in the catalog is used."""

    PUBLIC = "public"
    INTERNAL = "internal"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    auth_url: str
    """Of Keystone, with or without `/v3`."""
    credential_id: str
    """Of an application credential."""
    secret_file: str
    """A file that has its secret."""
    region: str = ""
    """Empty where the catalog has only one."""
    interface: Interface = Interface.PUBLIC
    ca_file: str | None = None
    """The authority that signed the services' certificates, if it is not well known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grant:
    token: str
    compute: str
    """Nova's URL."""


class Session:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._grant: _Grant | None = None
        self._renewing = asyncio.Lock()

    async def get(self, path: str, type_: type[T]) -> T:
        return decode(await self.request("GET", path), type_)

    async def request(self, method: str, path: str, body: object = None) -> Answer:
        """`path` is below Nova's URL. Raises DriverError for every answer but a success."""
        grant = self._grant or await self._renewed(None)
        answer = await self._ask(grant, method, path, body)
        if answer.status == 401:
            # The token has expired, so nothing was done.
            answer = await self._ask(await self._renewed(grant), method, path, body)
        if not 200 <= answer.status < 300:
            raise cloud_error(answer, service="Nova")
        return answer

    async def _ask(self, grant: _Grant, method: str, path: str, body: object) -> Answer:
        headers = {
            "X-Auth-Token": grant.token,
            "OpenStack-API-Version": f"compute {MICROVERSION}",
            "Accept": "application/json",
        }
        return await self._send(method, grant.compute + path, headers, body)

    async def _renewed(self, refused: _Grant | None) -> _Grant:
        async with self._renewing:
            if self._grant is refused or self._grant is None:
                self._grant = await self._authenticate()
            return self._grant

    async def _authenticate(self) -> _Grant:
        url = self._cloud.auth_url.rstrip("/").removesuffix("/v3") + "/v3/auth/tokens"
        try:
            credential = {
                "id": self._cloud.credential_id,
                "secret": await asyncio.to_thread(secret, self._cloud.secret_file),
            }
        except TargetError as error:
            raise DriverError(str(error)) from error
        identity = {"methods": ["application_credential"], "application_credential": credential}
        answer = await self._send("POST", url, {}, {"auth": {"identity": identity}})
        if answer.status != 201:
            raise DriverError(str(cloud_error(answer, service="Keystone")))
        token = answer.headers.get("x-subject-token", "")
        return _Grant(token=token, compute=self._compute(decode(answer, TokenBody)))

    def _compute(self, body: TokenBody) -> str:
        interface, region = self._cloud.interface, self._cloud.region
        for service in body.token.catalog:
            for endpoint in service.endpoints:
                is_wanted = endpoint.interface == interface and region in ("", endpoint.region)
                if service.type == "compute" and is_wanted:
                    url = endpoint.url.rstrip("/")
                    return url if _VERSION in url else url + _VERSION
        where = f" in region {region}" if region else ""
        raise DriverError(f"Keystone's catalog has no {interface} URL for Nova{where}")

    async def _send(self, method: str, url: str, headers: dict[str, str], body: object) -> Answer:
        sent = {"User-Agent": f"forewarned-actuator/{__version__}", **headers}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        request = Request(method=method, url=url, headers=sent, body=content)
        try:
            async with asyncio.timeout(_PATIENCE.total_seconds()):
                return await send(request, ca_file=self._cloud.ca_file)
        except TargetError as error:
            raise DriverError(str(error)) from error
        except TimeoutError as error:
            limit = format_duration(_PATIENCE)
            raise DriverError(f"{origin(url)} did not answer within {limit}") from error


def decode(answer: Answer, type_: type[T]) -> T:
    """Fields that are not asked for may be anything."""
    try:
        return msgspec.json.decode(answer.body, type=type_)
    except msgspec.MsgspecError as error:
        raise DriverError(f"OpenStack's response is not as documented: {error}") from error
