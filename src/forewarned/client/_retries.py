"""What can go wrong with a request, and whether and when to retry it. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from forewarned.client._errors import ScheduledEventsError, UnavailableError
from forewarned.client._steps import Pause

Jitter = Callable[[], float]
"""A random number from 0 to 1, so that clients that lost a service together return one by one."""

UPDATING: Final = 70.0
"""Seconds that a metadata service may take to update itself, by Azure's documentation."""
_FIRST_PAUSE: Final = 0.5
# A Spot VM has 30 s from notice to eviction: a longer pause could sleep through all of them.
_LONGEST_PAUSE: Final = 10.0
_LONGEST_RETRY_AFTER: Final = 60.0
_ATTEMPTS: Final = 4


class Severity(Enum):
    PASSING = auto()
    """It may succeed the next time."""
    UPDATING = auto()
    """The service says that it will be back."""
    SLOW = auto()
    """The answer did not come in time."""
    REFUSED = auto()
    """An operator would have to change something, and may: a path, a name, a rule."""
    FINAL = auto()
    """The request itself is wrong, and will be wrong again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    error: ScheduledEventsError
    severity: Severity
    retry_after: float | None = None
    """Seconds after which the service wants to be asked again."""


class Retrying(Protocol):
    def pause(self, trouble: Trouble, now: float) -> Pause:
        """How long to wait; raises the trouble's error if waiting is no use."""

    def worked(self, now: float) -> None: ...

    @property
    def is_troubled(self) -> bool:
        """Whether the last request failed."""


class TimeUpError(Exception):
    """The time that was given to a watch has passed. Never leaves the package."""


class CallRetries:
    """For a single call: a few attempts, since its caller is waiting."""

    def __init__(self, jitter: Jitter) -> None:
        self._jitter = jitter
        self._failures = 0
        self._updating_since: float | None = None

    @property
    def is_troubled(self) -> bool:
        return self._failures > 0

    def worked(self, now: float) -> None:  # noqa: ARG002 - a single call has no afterwards
        self._failures = 0

    def pause(self, trouble: Trouble, now: float) -> Pause:
        self._failures += 1
        if trouble.severity is Severity.UPDATING:
            since = self._updating_since = self._updating_since or now
            is_over = now - since >= UPDATING
        else:
            is_over = trouble.severity is not Severity.PASSING or self._failures >= _ATTEMPTS
        if is_over:
            raise trouble.error
        return Pause(
            seconds=retry_delay(self._failures, trouble.retry_after, self._jitter),
            because=trouble.error,
            is_first=self._failures == 1,
        )


class WatchRetries:
    """For a watch: retries until its time is up, and raises what waiting can't fix."""

    def __init__(
        self, jitter: Jitter, *, now: float, timeout: float | None, patience: float | None
    ) -> None:
        self._jitter = jitter
        self._ends_at = None if timeout is None else now + timeout
        self._patience = patience
        self._failures = 0
        self._well_at = now
        self._has_worked = False
        self.trouble: ScheduledEventsError | None = None
        """Why the last request failed, if it did."""

    @property
    def is_troubled(self) -> bool:
        return self._failures > 0

    def worked(self, now: float) -> None:
        self._failures = 0
        self.trouble = None
        self._well_at = now
        self._has_worked = True

    def remaining(self, now: float) -> float | None:
        """Seconds to the end of the watch, or None if it has none; raises TimeUpError at it."""
        if self._ends_at is None:
            return None
        if now >= self._ends_at:
            raise TimeUpError
        return self._ends_at - now

    def rest(self, seconds: float, now: float) -> Pause:
        """A pause between requests that succeed."""
        remaining = self.remaining(now)
        return Pause(seconds=seconds if remaining is None else min(seconds, remaining))

    def pause(self, trouble: Trouble, now: float) -> Pause:
        remaining = self.remaining(now)
        self._failures += 1
        self.trouble = trouble.error
        troubled = now - self._well_at
        if trouble.severity is Severity.FINAL:
            raise trouble.error
        # An endpoint that has never worked is probably the wrong one.
        if trouble.severity is Severity.REFUSED and not self._has_worked and troubled >= UPDATING:
            raise trouble.error
        if self._patience is not None and troubled >= self._patience:
            raise UnavailableError(
                f"scheduled events could not be read for {troubled:.0f} s: {trouble.error}"
            ) from trouble.error
        seconds = retry_delay(self._failures, trouble.retry_after, self._jitter)
        return Pause(
            seconds=seconds if remaining is None else min(seconds, remaining),
            because=trouble.error,
            is_first=self._failures == 1,
        )


def retry_delay(failures: int, retry_after: float | None, jitter: Jitter) -> float:
    """Seconds to wait after so many failures in a row."""
    # The exponent is bounded, too: a watch may fail for years.
    longest = min(_FIRST_PAUSE * float(1 << min(failures - 1, 10)), _LONGEST_PAUSE)
    delay = longest * (0.5 + jitter() / 2)
    return delay if retry_after is None else max(delay, min(retry_after, _LONGEST_RETRY_AFTER))
