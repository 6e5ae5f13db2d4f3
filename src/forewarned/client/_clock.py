"""The two clocks that the SDK reads, if none is injected."""

import time
from datetime import UTC, datetime, timedelta

from forewarned.client._steps import Passed


def passed() -> Passed:
    return Passed(now=monotonic(), at=wall_clock())


def monotonic() -> float:
    return time.monotonic()


def wall_clock() -> datetime:
    return datetime.now(UTC)


def seconds(span: float | timedelta) -> float:
    """A span in seconds, however it was given."""
    return span.total_seconds() if isinstance(span, timedelta) else float(span)
