"""How much notice each type of event gives, and the NotBefore that follows from it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, assert_never

from forewarned.core import errors
from forewarned.core.model import EventType, Resource

DEFAULT_TERMINATE: Final = timedelta(minutes=5)
LONGEST_TERMINATE: Final = timedelta(minutes=15)
LONGEST: Final = timedelta(days=90)

_SECOND: Final = timedelta(seconds=1)


def minimum(type_: EventType, resources: Iterable[Resource]) -> timedelta:
    """Minimum notice as Azure documents it; Terminate's is in the instances' model."""
    # The same numbers are in agent/rehearsal.py, which imports nothing of the server, so a test
    # compares them, and in the sentences of console/action_forms.py.
    match type_:
        case EventType.FREEZE | EventType.REBOOT:
            return timedelta(minutes=15)
        case EventType.REDEPLOY:
            return timedelta(minutes=10)
        case EventType.PREEMPT:
            return timedelta(seconds=30)
        case EventType.TERMINATE:
            return max(resource.terminate_notice or DEFAULT_TERMINATE for resource in resources)
        case other:
            assert_never(other)


def agree(
    type_: EventType,
    resources: Iterable[Resource],
    *,
    asked: timedelta | None,
    short_notice: bool,
    short_notice_allowed: bool,
) -> timedelta:
    """The notice to give: what was asked for if it is legal, the minimum if nothing was."""
    if short_notice and not short_notice_allowed:
        raise errors.ShortNoticeForbiddenError
    least = minimum(type_, resources)
    if asked is None:
        return least
    most = max(least, LONGEST_TERMINATE) if type_ is EventType.TERMINATE else LONGEST
    if asked > most:
        raise errors.NoticeTooLongError(asked, most)
    floor = timedelta(0) if short_notice else least
    if asked < floor:
        raise errors.NoticeTooShortError(asked, floor)
    return asked


def not_before(now: datetime, notice: timedelta) -> datetime:
    """Rounded up: the document shows whole seconds, and what it shows is a promise."""
    exact = now + notice
    whole = exact.replace(microsecond=0)
    return whole if whole == exact else whole + _SECOND
