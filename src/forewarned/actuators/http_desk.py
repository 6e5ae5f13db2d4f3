"""The desk of a server, over `/v1/tasks`.

Never through a proxy and never after a redirect: what is asked here takes machines down (S16). A
token is not sent where it could be read in transit.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote

import httpx2
import msgspec

from forewarned import __version__
from forewarned.actuators.desk import (
    Assignment,
    DeskUnavailableError,
    Destination,
    TaskRef,
)
from forewarned.actuators.driver import Sighting, Verdict, Vm
from forewarned.actuators.sources.reporter import SourceChanges
from forewarned.actuators.sources.table import SourceTable
from forewarned.actuators.surveyor import Question, Questions
from forewarned.config.values import Address
from forewarned.core.errors import TaskLostError
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import EventType
from forewarned.service.sources.listing import Listing

_CONNECTING: Final = 5.0
_ANSWERING: Final = 10.0
_TAKING_IN: Final = 120.0
"""Seconds: the first listing may bring thousands of VMs."""
_LONGEST_EXCERPT: Final = 300


class UnsafeServerError(Exception):
    """The token must not be sent to this server."""

    def __init__(self, url: str) -> None:
        super().__init__(f"not sending a token to {url}: it could be read in transit; use https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    url: str
    """`https://host:port`"""
    token: str = field(default="", repr=False)
    """Empty for none."""
    ca: Path | None = None
    """The certificate to trust it by; None for what the system trusts."""
    shows: Path | None = None
    """The certificate that it shows, where that is on this machine: then no other is trusted, and
    names in it don't matter."""

    def __post_init__(self) -> None:
        url = httpx2.URL(self.url)
        if self.token and url.scheme != "https" and not Address(url.host, 0).is_loopback:
            raise UnsafeServerError(self.url)

    def trust(self) -> ssl.SSLContext | bool:
        if not self.url.startswith("https:"):
            # Plain HTTP needs no certificates, and loading them takes a while.
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.shows is not None:
            context = ssl.create_default_context(cafile=self.shows)
            context.check_hostname = False
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            return context
        return True if self.ca is None else ssl.create_default_context(cafile=self.ca)


class _Claimed(msgspec.Struct, kw_only=True):
    event_id: str
    vm: str
    attempt: int
    type: EventType
    host: str
    vm_id: str = ""
    duration: float | None = None
    """Seconds."""
    before: Sighting | None = None
    begun: bool = False


class _Claims(msgspec.Struct):
    tasks: list[_Claimed]


class _Question(msgspec.Struct):
    host: str
    type: EventType
    vm: str | None = None
    vm_id: str = ""
    vm_host: str | None = None
    target: str | None = None


class _Questions(msgspec.Struct):
    questions: list[_Question]
    cordoned: list[str] = []
    moving: dict[str, str | None] = {}


class _ListingBegins(msgspec.Struct):
    began_at: datetime


class _SourceChanges(msgspec.Struct):
    added: list[str] = []
    changed: list[str] = []
    removed: list[str] = []


class _Error(msgspec.Struct):
    message: str = ""


class _Refusal(msgspec.Struct):
    error: _Error


class HttpDesk:
    def __init__(self, server: Server, *, actuator: str, holder: str) -> None:
        """`holder` says who this is, for people: a host and a process."""
        self._server = server
        self._actuator = actuator
        self._holder = holder
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    def _open(self) -> httpx2.AsyncClient:
        """Raises OSError where the certificate to trust can't be read."""
        if self._client is None:
            authorization = {}
            if self._server.token:
                authorization["Authorization"] = f"Bearer {self._server.token}"
            self._client = httpx2.AsyncClient(
                base_url=self._server.url,
                headers={
                    "Accept": "application/json",
                    "Content-Type": "application/json",
                    "User-Agent": f"forewarned-actuator/{__version__}",
                    "Forewarned-Actor": f"actuator:{self._actuator}"[:64],
                    **authorization,
                },
                trust_env=False,
                follow_redirects=False,
                verify=self._server.trust(),
            )
        return self._client

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def claim(self, *, limit: int, patience: timedelta) -> list[Assignment]:
        wait = patience.total_seconds()
        answer = await self._post(
            "/v1/tasks/claim",
            {
                "actuator": self._actuator,
                "holder": self._holder,
                "limit": limit,
                "wait": wait,
            },
            patience=wait + _ANSWERING,
        )
        self._refuse_failure(answer)
        try:
            claims = msgspec.json.decode(answer.content, type=_Claims)
        except msgspec.MsgspecError as error:
            raise self._unreadable(error) from error
        return [_assignment(claimed) for claimed in claims.tasks]

    async def renew(self, task: TaskRef, progress: str = "") -> None:
        await self._report(task, "renew", {"progress": progress} if progress else {})

    async def begin(self, task: TaskRef, before: Sighting) -> None:
        await self._report(task, "begin", {"before": before})

    async def finish(self, task: TaskRef, after: Sighting) -> None:
        await self._report(task, "finish", {"after": after})

    async def fail(
        self, task: TaskRef, error: str, *, unharmed: bool, after: Sighting | None
    ) -> None:
        told = {"error": error, "unharmed": unharmed, "after": after}
        await self._report(task, "fail", told)

    async def destination(self, task: TaskRef) -> Destination:
        found = await self._questions()
        return Destination(
            cordoned=frozenset(found.cordoned),
            target=found.moving.get(task.event_id),
            has_to_move=task.event_id in found.moving,
        )

    async def questions(self) -> Questions:
        found = await self._questions()
        return Questions(
            questions=tuple(map(_question, found.questions)), cordoned=frozenset(found.cordoned)
        )

    async def _questions(self) -> _Questions:
        answer = await self._send(
            "GET", f"/v1/drain-questions?actuator={quote(self._actuator, safe='')}"
        )
        self._refuse_failure(answer)
        try:
            return msgspec.json.decode(answer.content, type=_Questions)
        except msgspec.MsgspecError as error:
            raise self._unreadable(error) from error

    async def answer_survey(self, host: str, vm: Vm, verdict: Verdict) -> None:
        told = {"vm": vm.name, "possible": verdict.possible, "reason": verdict.reason}
        await self._answer(host, "survey", {**told, "target": verdict.target})

    async def answer_listing(
        self, host: str, vms: Sequence[str] | None, *, error: str = ""
    ) -> None:
        await self._answer(
            host, "listing", {"actuator": self._actuator, "vms": vms, "error": error}
        )

    async def begin_listing(self) -> datetime:
        answer = await self._send("GET", self._listing_path)
        self._refuse_failure(answer)
        try:
            return msgspec.json.decode(answer.content, type=_ListingBegins).began_at
        except msgspec.MsgspecError as error:
            raise self._unreadable(error) from error

    async def report_listing(
        self, source: SourceTable, listing: Listing, *, began_at: datetime
    ) -> SourceChanges:
        told = {"vms": listing.vms, "silent": listing.silent, "began_at": began_at}
        return await self._report_source(source, told)

    async def report_no_listing(self, source: SourceTable, error: str) -> None:
        await self._report_source(source, {"vms": None, "error": error})

    @property
    def _listing_path(self) -> str:
        return f"/v1/sources/{quote(self._actuator, safe='')}/listing"

    async def _report_source(
        self, source: SourceTable, told: dict[str, object]
    ) -> "_SourceChanges":
        where = {
            "location": source.location,
            "resource_group": source.resource_group,
            "subscription_id": source.subscription_id,
        }
        answer = await self._post(
            self._listing_path,
            {"holder": self._holder, "every": source.every.total_seconds(), **where, **told},
            patience=_TAKING_IN,
        )
        self._refuse_failure(answer)
        try:
            return msgspec.json.decode(answer.content, type=_SourceChanges)
        except msgspec.MsgspecError as error:
            raise self._unreadable(error) from error

    async def _answer(self, host: str, what: str, told: dict[str, object]) -> None:
        answer = await self._post(f"/v1/hosts/{quote(host, safe='')}/drain/{what}", told)
        # 404: the server no longer asks.
        if answer.status_code != 404:
            self._refuse_failure(answer)

    async def _report(self, task: TaskRef, what: str, told: dict[str, object]) -> None:
        vm = quote(task.vm, safe="")
        answer = await self._post(
            f"/v1/tasks/{task.event_id}/{vm}/{what}", {"attempt": task.attempt, **told}
        )
        # 404: the event is over, and with it the task.
        if answer.status_code in {404, 409}:
            raise TaskLostError(task.key, task.attempt)
        self._refuse_failure(answer)

    async def _post(
        self, path: str, body: dict[str, object], *, patience: float = _ANSWERING
    ) -> httpx2.Response:
        return await self._send("POST", path, msgspec.json.encode(body), patience=patience)

    async def _send(
        self, method: str, path: str, content: bytes = b"", *, patience: float = _ANSWERING
    ) -> httpx2.Response:
        try:
            return await self._open().request(
                method,
                path,
                content=content,
                timeout=httpx2.Timeout(patience, connect=_CONNECTING),
            )
        except (httpx2.ConnectError, OSError) as error:
            # The certificate to trust may have been replaced since it was read.
            await self._close()
            raise self._unreachable(error) from error
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreadable(self, error: Exception) -> DeskUnavailableError:
        return DeskUnavailableError(f"the response from {self._server.url} can't be read: {error}")

    def _unreachable(self, error: Exception) -> DeskUnavailableError:
        why = str(error) or type(error).__name__
        return DeskUnavailableError(f"can't reach {self._server.url}: {why}")

    def _refuse_failure(self, answer: httpx2.Response) -> None:
        if answer.is_success:
            return
        try:
            why = msgspec.json.decode(answer.content, type=_Refusal).error.message
        except msgspec.MsgspecError:
            why = answer.text[:_LONGEST_EXCERPT]
        raise DeskUnavailableError(f"{self._server.url} answered {answer.status_code}: {why}")


def _assignment(claimed: _Claimed) -> Assignment:
    return Assignment(
        ref=TaskRef(
            event_id=EventId(claimed.event_id),
            vm=ResourceName(claimed.vm),
            attempt=claimed.attempt,
        ),
        type=claimed.type,
        vm=Vm(name=claimed.vm, vm_id=claimed.vm_id, host=claimed.host),
        duration=None if claimed.duration is None else timedelta(seconds=claimed.duration),
        before=claimed.before,
        begun=claimed.begun,
    )


def _question(asked: _Question) -> Question:
    vm = None
    if asked.vm is not None:
        vm = Vm(name=asked.vm, vm_id=asked.vm_id, host=asked.vm_host or asked.host)
    return Question(type=asked.type, host=asked.host, vm=vm, target=asked.target)
