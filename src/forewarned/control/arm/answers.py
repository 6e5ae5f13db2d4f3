"""What an operation answers with, and how long-running ones tell where to look again.

Invariant: an answer that is not final names its operation. A client takes a 202
without any such header for success.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol

import msgspec

from forewarned.service.records import OperationRecord

# A client waits 30 s where this is 0, and fails where it is no whole number.
RETRY_AFTER: Final = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswer:
    status: HTTPStatus = HTTPStatus.OK
    body: object = None
    """Anything msgspec can encode; None for an empty body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"

    def content(self) -> bytes:
        return b"" if self.body is None else msgspec.json.encode(self.body)


class _Asked(Protocol):
    def operation_url(self, operation_id: str) -> str: ...


# --- answers that are final ----------------------------------------------------------------------


def ok(body: object) -> ArmAnswer:
    return ArmAnswer(body=body)


def multi_status(body: object) -> ArmAnswer:
    """Each part of what was asked has its own result, in the body."""
    return ArmAnswer(status=HTTPStatus.MULTI_STATUS, body=body)


def no_content() -> ArmAnswer:
    return ArmAnswer(status=HTTPStatus.NO_CONTENT)


def finished() -> ArmAnswer:
    """200 without a body: how an operation's Location ends."""
    return ArmAnswer()


# --- answers to look again after -----------------------------------------------------------------


def created(body: object, record: OperationRecord | None, asked: _Asked) -> ArmAnswer:
    """To a PUT of what there was not. Without an operation there is nothing to wait for."""
    return ArmAnswer(status=HTTPStatus.CREATED, body=body, headers=_where_to_look(record, asked))


def updated(body: object, record: OperationRecord | None, asked: _Asked) -> ArmAnswer:
    """To a PUT or PATCH of what there was."""
    return ArmAnswer(body=body, headers=_where_to_look(record, asked))


def accepted(record: OperationRecord, asked: _Asked) -> ArmAnswer:
    """To a POST or DELETE."""
    return ArmAnswer(
        status=HTTPStatus.ACCEPTED,
        headers=_where_to_look(record, asked) | _monitor(record.id, asked),
    )


def in_progress(body: object) -> ArmAnswer:
    """To a look at the status of an operation that is not over."""
    return ArmAnswer(body=body, headers={"Retry-After": RETRY_AFTER})


def still_running(operation_id: str, asked: _Asked) -> ArmAnswer:
    """To a look at the Location of an operation that is not over."""
    return ArmAnswer(
        status=HTTPStatus.ACCEPTED,
        headers=_monitor(operation_id, asked) | {"Retry-After": RETRY_AFTER},
    )


def _where_to_look(record: OperationRecord | None, asked: _Asked) -> dict[str, str]:
    if record is None:
        return {}
    return {"Azure-AsyncOperation": asked.operation_url(record.id), "Retry-After": RETRY_AFTER}


def _monitor(operation_id: str, asked: _Asked) -> dict[str, str]:
    return {"Location": f"{asked.operation_url(operation_id)}&monitor=true"}
