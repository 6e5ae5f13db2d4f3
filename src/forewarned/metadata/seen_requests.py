"""A request and its answer, as developers who watch an emulator are told of it."""

from typing import Final

from forewarned.metadata.refusals import Refusal
from forewarned.metadata.routes import (
    Approve,
    ReadEvents,
    ReadInstance,
    ReadReadiness,
    ReadToken,
    ReadVersions,
    ReportReadiness,
    RoutedRequest,
)
from forewarned.service.records import Caller
from forewarned.service.requests.watch import SeenRequest

_MOST_OF_BODY: Final = 4096
_WORDS: Final = {
    ReadEvents: "events",
    Approve: "approve",
    ReadInstance: "instance",
    ReadVersions: "versions",
    ReadToken: "token",
    ReadReadiness: "readiness",
    ReportReadiness: "readiness",
    Refusal: "refused",
}


def seen(caller: Caller | None, routed: RoutedRequest, status: int | None) -> SeenRequest:
    raw, operation = routed.raw, routed.operation
    return SeenRequest(
        vm=None if caller is None else caller.name,
        asks=_WORDS[type(operation)],
        method="" if raw is None else raw.method,
        target="" if raw is None else raw.target,
        headers=() if raw is None else raw.headers,
        body=b"" if raw is None else raw.body[:_MOST_OF_BODY],
        status=None if status is None else int(status),
        refusal=operation.message if isinstance(operation, Refusal) else "",
    )
