"""Requests as services tell of them, as facts of a scenario. Pure."""

from typing import Final

from forewarned.core.errors import InvalidIdError
from forewarned.core.ids import EventId
from forewarned.metadata import wire
from forewarned.scenarios.model import What
from forewarned.scenarios.observations import Request
from forewarned.service.requests.watch import SeenRequest

_EVENTS: Final = "/metadata/scheduledevents"
_INSTANCE: Final = "/metadata/instance"


def request_of(seen: SeenRequest) -> Request:
    what = what_of(seen.method, seen.target)
    approves: tuple[EventId, ...] = ()
    if what is What.APPROVE:
        try:
            approves = tuple(wire.start_requests(seen.body))
        except (wire.BadBodyError, InvalidIdError):
            approves = ()
    return Request(
        vm=seen.vm,
        what=what,
        method=seen.method,
        target=seen.target,
        headers=seen.headers,
        body=seen.body,
        approves=approves,
        status=seen.status,
        refusal=seen.refusal,
    )


def what_of(method: str, target: str) -> What | None:
    """By the path alone: a request that is refused is one for its document all the same."""
    path = target.partition("?")[0].lower()
    if _EVENTS in path:
        return What.APPROVE if method == "POST" else What.EVENTS
    return What.INSTANCE if _INSTANCE in path else None
