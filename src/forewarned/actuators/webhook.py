"""Carries tasks out by asking a service of the operator's to do it, with signed requests.

200 means done. 202 means that the service will do it, and then reports to the server itself, with
a POST to the task's `finish` or `fail`. Requests are signed as Standard Webhooks says, and every
request about a task has the same Idempotency-Key: the service must not do twice what it is asked
twice.
"""

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta
from typing_extensions import override

from forewarned import __version__
from forewarned.actuators.decision import OnDoubt, Procedure
from forewarned.actuators.driver import (
    Action,
    Driver,
    DriverError,
    Effect,
    Progress,
    RefusedError,
    Sighting,
    TryLaterError,
    Verdict,
    Vm,
)
from forewarned.actuators.table import ActuatorTable
from forewarned.clock import wall_clock
from forewarned.config.durations import format_duration
from forewarned.core.model import EventType
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Answer, Request, secret, send
from forewarned.targets.signatures import PREFIX, signed
from forewarned.targets.urls import check_url, origin

_PATIENCE: Final = timedelta(seconds=30)
_LATER: Final = frozenset({409, 425, 429, 503})
_EFFECTS: Final = {
    # A service may move the VM or hold it.
    EventType.FREEZE: Effect.HOLDS,
    EventType.REBOOT: Effect.RESTARTS,
    EventType.REDEPLOY: Effect.MOVES,
    EventType.PREEMPT: Effect.STOPS,
    EventType.TERMINATE: Effect.REMOVES,
}


class WebhookTable(ActuatorTable, frozen=True, kw_only=True):
    """Sends a signed request for each VM."""

    url: str
    """Where to send it. No proxy is used, and redirects are not followed."""
    secret_file: Path
    """A file with the secret that requests are signed with."""
    ca_file: Path | None = None
    """A file with the certificate of the authority that signed the service's, if the system does
    not trust it.
    """
    types: tuple[EventType, ...] = tuple(EventType)
    """The types of events it is asked to carry out."""
    timeout: timedelta = timedelta(hours=1)
    """How long the service may take to report."""
    retries: Annotated[int, Meta(ge=0, le=100)] = 5
    """How many times the request is sent again after an error, or no answer within 30s."""
    on_doubt: OnDoubt = OnDoubt.REPEAT
    """Whether the request is sent again, with the same Idempotency-Key, if it may have been sent
    before: `repeat`, or `stop` for a service that would act twice.
    """

    def __post_init__(self) -> None:
        check_url(self.url)
        if self.timeout <= timedelta(0):
            raise ValueError("timeout must be more than 0s")
        if not self.types:
            raise ValueError("types must not be empty")

    @override
    def procedures(self) -> Mapping[EventType, Procedure]:
        return {
            type_: Procedure(
                action=Action(
                    type=type_, do=f"send a request to {origin(self.url)}", effect=_EFFECTS[type_]
                ),
                timeout=self.timeout,
                retries=self.retries,
                on_doubt=self.on_doubt,
            )
            for type_ in self.types
        }

    @override
    def opened(self, state: Path) -> AbstractAsyncContextManager[Driver]:
        return nullcontext(
            WebhookDriver(self.url, secret_file=self.secret_file, ca_file=self.ca_file)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the service has said about a VM, as far as this process knows."""

    key: str
    is_done: bool = False
    is_accepted: bool = False
    host: str | None = None


class WebhookDriver:
    def __init__(
        self,
        url: str,
        *,
        secret_file: Path,
        ca_file: Path | None = None,
        now: Callable[[], datetime] = wall_clock,
        patience: timedelta = _PATIENCE,
    ) -> None:
        self._url = url
        self._secret_file = secret_file
        self._ca_file = ca_file
        self._now = now
        self._patience = patience
        self._asked: dict[str, _Asked] = {}
        """By VM. A new process knows nothing, and asks again."""

    async def survey(self, action: Action, vm: Vm) -> Verdict:  # noqa: ARG002  # it is not asked
        try:
            self._secret()
        except TargetError as error:
            return Verdict(possible=False, reason=str(error))
        return Verdict(possible=True, reason=action.do)

    async def observe(self, vm: Vm) -> Sighting:
        asked = self._asked.get(vm.name, _Asked(key=""))
        waits_for = f"{origin(self._url)} has accepted the request" if asked.is_accepted else ""
        return Sighting(host=asked.host, intent=asked.key, issued=asked.is_done, job=waits_for)

    async def mark(self, vm: Vm, key: str) -> None:
        self._asked[vm.name] = _Asked(key=key)

    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        answer = await self._send(_message(action, vm, key, at=self._now()), key)
        told = f"{origin(self._url)} answered {answer.status}"
        progress(told)
        if answer.status in {200, 201, 204}:
            self._asked[vm.name] = _Asked(key=key, is_done=True, host=_host(answer))
            return
        if answer.status == 202:
            self._asked[vm.name] = _Asked(key=key, is_accepted=True)
            return
        told = f"{told}: {answer.excerpt()}".removesuffix(": ")
        if answer.status in _LATER:
            raise TryLaterError(told)
        if answer.status < 500:
            raise RefusedError(told)
        raise DriverError(told)

    async def abort(self, vm: Vm, key: str) -> None:
        """A service that has accepted a task can't be stopped: what it still does is unknown."""

    async def _send(self, body: bytes, key: str) -> Answer:
        at = int(self._now().timestamp())
        try:
            signature = signed([self._secret()], key, at, body)
        except TargetError as error:
            raise RefusedError(str(error)) from error
        request = Request(
            method="POST",
            url=self._url,
            headers={
                "Content-Type": "application/json",
                "User-Agent": f"forewarned-actuator/{__version__}",
                "Idempotency-Key": key,
                **signature,
            },
            body=body,
        )
        ca_file = None if self._ca_file is None else str(self._ca_file)
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                return await send(request, ca_file=ca_file)
        except TargetError as error:
            raise DriverError(str(error)) from error
        except TimeoutError as error:
            limit = format_duration(self._patience)
            raise DriverError(f"{origin(self._url)} did not answer within {limit}") from error

    def _secret(self) -> bytes:
        """Read at each use, so that it can be replaced. Raises TargetError."""
        text = secret(str(self._secret_file))
        if not text:
            raise TargetError(f"the file {self._secret_file} is empty")
        if not text.startswith(PREFIX):
            return text.encode()
        try:
            return base64.b64decode(text.removeprefix(PREFIX), validate=True)
        except ValueError as error:
            raise TargetError(
                f"in {self._secret_file}, what follows {PREFIX} must be base64"
            ) from error


def _message(action: Action, vm: Vm, key: str, *, at: datetime) -> bytes:
    event_id, _, _ = key.partition("/")
    seconds = None if action.duration is None else action.duration.total_seconds()
    return json.dumps(
        {
            "type": "forewarned.task",
            "timestamp": at.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "data": {
                "key": key,
                "event_id": event_id,
                "attempt": action.attempt,
                "event_type": action.type.value,
                "vm": vm.name,
                "vm_id": vm.vm_id,
                "host": vm.host,
                "duration_seconds": seconds,
                "cordoned": sorted(action.cordoned),
                "target": action.target,
            },
        }
    ).encode()


def _host(answer: Answer) -> str | None:
    """Where the VM is now, if the service says so."""
    try:
        told = answer.json()
    except TargetError:
        return None
    host = told.get("host") if isinstance(told, dict) else None
    return host if isinstance(host, str) and host else None
