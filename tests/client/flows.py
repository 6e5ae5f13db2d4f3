"""A service that is only a list of outcomes, and a clock that is only a number."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from forewarned.client import Change
from forewarned.client._protocol import EventsProtocol
from forewarned.client._steps import Answer, Flow, Loss, Lost, Passed, Pause, Request, Tell
from forewarned.client._watch import WatchOptions, watch

T = TypeVar("T")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ID = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


@dataclass(frozen=True, kw_only=True)
class Say:
    """An answer to come."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    after: float = 0.0
    """Seconds that it takes."""


@dataclass(frozen=True, kw_only=True)
class Lose:
    loss: Loss = Loss.BROKEN
    after: float = 0.0


Script = Callable[[Request], Say | Lose]


def an_event(event_id: str = ID, **fields: object) -> dict[str, Any]:
    return {
        "EventId": event_id,
        "EventStatus": "Scheduled",
        "EventType": "Reboot",
        "ResourceType": "VirtualMachine",
        "Resources": ["web_0"],
        "NotBefore": "Thu, 01 Jan 2026 13:00:00 GMT",
    } | fields


def a_body(incarnation: int, *events: dict[str, Any]) -> bytes:
    return json.dumps({"DocumentIncarnation": incarnation, "Events": events}).encode()


def a_document(incarnation: int, *events: dict[str, Any], **headers: str) -> Say:
    tag = {"etag": f'"{incarnation}"'}
    return Say(body=a_body(incarnation, *events), headers=tag | headers)


class Stage:
    """Takes a flow's steps with a script for a service."""

    def __init__(self, script: Script | Sequence[Say | Lose]) -> None:
        self.now = 1000.0
        self.requests: list[Request] = []
        self.pauses: list[Pause] = []
        self._script = script if callable(script) else _in_turn(script)

    def run(self, flow: Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                step = flow.send(self._take(step))
        except StopIteration as end:
            result: T = end.value
            return result

    def watch(self, protocol: EventsProtocol, options: WatchOptions) -> Iterator[Change]:
        flow = watch(protocol, options)
        step = next(flow)
        while True:
            if isinstance(step, Tell):
                yield step.change
            try:
                step = flow.send(self._take(step))
            except StopIteration:
                return

    def _take(self, step: object) -> Passed:
        if isinstance(step, Request):
            return self._answer(step)
        if isinstance(step, Pause):
            self.pauses.append(step)
            self.now += step.seconds
        return Passed(now=self.now, at=self._at())

    def _answer(self, request: Request) -> Passed:
        self.requests.append(request)
        asked = self.now
        said = self._script(request)
        self.now += min(said.after, request.timeout)
        if isinstance(said, Lose) or said.after > request.timeout:
            loss = said.loss if isinstance(said, Lose) else Loss.TIMED_OUT
            return Lost(now=self.now, at=self._at(), loss=loss, reason="lost")
        return Answer(
            now=self.now,
            at=self._at(),
            asked=asked,
            status=said.status,
            headers=said.headers,
            body=said.body,
            url=f"http://metadata{request.target}",
        )

    def _at(self) -> datetime:
        return NOON + timedelta(seconds=self.now - 1000)


def _in_turn(script: Sequence[Say | Lose]) -> Script:
    rest = iter(script)
    return lambda _: next(rest)


def a_protocol(**more: Any) -> EventsProtocol:
    usual: dict[str, Any] = {
        "api_version": "2020-07-01",
        "timeout": 15.0,
        "first_timeout": 150.0,
        "resource": None,
        "jitter": lambda: 0.5,
    }
    return EventsProtocol(**usual | more)


def options(**more: Any) -> WatchOptions:
    return WatchOptions(
        **{"poll": 1.0, "timeout": None, "patience": None, "only_mine": False, "since": None} | more
    )
