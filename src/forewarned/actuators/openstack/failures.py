"""What the errors of OpenStack's services mean to an actuator."""

import json
import re
from http import HTTPStatus
from typing import Final

from forewarned.actuators.driver import DriverError, RefusedError, TryLaterError
from forewarned.targets.http import Answer

_BUSY: Final = re.compile(r"\btask_state\b|\bis locked\b|\blocked by\b")
"""Conflicts that end by themselves: something else is being done to the VM."""
_LATER: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""Neither comes from Nova itself, but from what stands before it."""


class NotFoundError(RefusedError):
    """Nova has no such thing."""


def cloud_error(answer: Answer, *, service: str) -> DriverError:
    """For an answer that is no success."""
    text = f"{service} answered {answer.status}: {_message(answer)}".removesuffix(": ")
    if answer.status == HTTPStatus.NOT_FOUND:
        return NotFoundError(text)
    if answer.status in _LATER:
        return TryLaterError(text)
    if answer.status == HTTPStatus.CONFLICT and _BUSY.search(text):
        return TryLaterError(text)
    if answer.status < 500:
        return RefusedError(text)
    return DriverError(text)


def _message(answer: Answer) -> str:
    """`{"conflictingRequest": {"code": 409, "message": "…"}}`, or what a proxy says."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        return answer.excerpt()
    for value in found.values() if isinstance(found, dict) else ():
        if isinstance(value, dict) and isinstance(value.get("message"), str):
            return " ".join(value["message"].split())
    return answer.excerpt()
