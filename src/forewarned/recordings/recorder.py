"""Writes down what an endpoint says, whenever that differs from what it said before."""

from datetime import datetime
from typing import Final

from forewarned.client import Exchange
from forewarned.recordings.anonymity import Anonymity
from forewarned.recordings.file import RecordingFile
from forewarned.recordings.form import (
    VERSION,
    Answered,
    Began,
    Outcome,
    Stopped,
    Unanswered,
)

_HEADERS: Final = ("content-type", "date", "etag", "retry-after", "server")
"""What tells something about the endpoint. Others may tell something about its network."""


class Recorder:
    """With an `anonymity`, no id and no name reaches the file."""

    def __init__(self, file: RecordingFile, anonymity: Anonymity | None) -> None:
        self._file = file
        self._anonymity = anonymity

    def begin(self, at: datetime, *, endpoint: str, api_version: str, vm: str) -> None:
        """Raises FullError and OSError, as all of these."""
        anonymity = self._anonymity
        self._file.append(
            Began(
                at=at,
                recording=VERSION,
                endpoint=endpoint if anonymity is None else "",
                api_version=api_version,
                vm=vm if anonymity is None or not vm else anonymity.name(vm),
                anonymous=anonymity is not None,
            )
        )

    def take(self, exchange: Exchange) -> Outcome | None:
        """The line that was written; None if the endpoint has said the same as before."""
        outcome = self._outcome(exchange)
        if self._file.last is not None and _says(self._file.last) == _says(outcome):
            return None
        self._file.append(outcome)
        return outcome

    def stop(self, at: datetime) -> None:
        self._file.append(Stopped(at=at))

    def _outcome(self, exchange: Exchange) -> Outcome:
        anonymity = self._anonymity
        if exchange.status is None:
            reason = exchange.reason if anonymity is None else ""
            return Unanswered(at=exchange.at, loss=exchange.loss, reason=reason)
        headers = {name: exchange.headers[name] for name in _HEADERS if name in exchange.headers}
        body = exchange.body
        if anonymity is not None:
            headers, body = anonymity.headers(headers), anonymity.body(body)
        try:
            text, raw = body.decode(), b""
        except UnicodeDecodeError:
            text, raw = "", body
        return Answered(
            at=exchange.at, status=exchange.status, headers=headers, body=text, base64=raw
        )


def _says(outcome: Outcome) -> tuple[object, ...]:
    """What is compared. A header, such as the Date, is no change."""
    if isinstance(outcome, Answered):
        return outcome.status, outcome.content
    return (outcome.loss,)
