"""Every answer of an endpoint as it came, good or bad: for programs that keep or measure it. Pure.

Unlike a watch this trusts nothing that the endpoint says about itself: each read is whole, without
conditions and without waiting, because a recording has to show when an endpoint is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from forewarned.client._protocol import EventsProtocol, trouble_of
from forewarned.client._retries import retry_delay
from forewarned.client._steps import Answer, Flow, Lost, Passed, Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One read of the document and its outcome."""

    at: datetime
    """When it ended, by this machine's clock, in UTC."""
    status: int | None
    """The status of the answer; None if there was none."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case."""
    body: bytes = b""
    loss: str = ""
    """Why there was no answer: `unreached`, `timed_out`, `broken` or `oversized`; empty if there
    was one."""
    reason: str = ""
    """The same in words."""


class Exchanges:
    """Reads again and again: every `poll` seconds while that works, and ever less often if not."""

    def __init__(self, protocol: EventsProtocol, *, poll: float) -> None:
        if not poll > 0:
            raise ValueError("the time between polls must be above zero")
        self._protocol = protocol
        self._poll = poll
        self._pause = 0.0
        self._failures = 0

    def next(self) -> Flow[Exchange]:
        """Wait until it is time, and read."""
        began = (yield Pause(seconds=self._pause)).now
        outcome = yield self._protocol.look()
        trouble = trouble_of(outcome)
        self._protocol.note(outcome, trouble)
        if trouble is None:
            self._failures = 0
            self._pause = max(0.0, self._poll - (outcome.now - began))
        else:
            self._failures += 1
            delay = retry_delay(self._failures, trouble.retry_after, self._protocol.jitter)
            self._pause = max(self._poll, delay)
        return _exchange(outcome)


def _exchange(outcome: Passed) -> Exchange:
    match outcome:
        case Answer(status=status, headers=headers, body=body):
            return Exchange(at=outcome.at, status=status, headers=headers, body=body)
        case Lost(loss=loss, reason=reason):
            return Exchange(at=outcome.at, status=None, loss=loss.name.lower(), reason=reason)
        case _:
            raise TypeError(outcome)
