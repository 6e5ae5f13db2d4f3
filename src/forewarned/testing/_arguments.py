"""What tests write, as values: a span, or one of a few words.

Mistakes are a plain ValueError that says what would be right.
"""

import math
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from forewarned.config.durations import InvalidDurationError, parse_duration

__tracebackhide__ = True

Span = str | timedelta | float
"""`"15m"`, a timedelta, or a number of seconds."""

Word = TypeVar("Word", bound=StrEnum)


class MistakeError(ValueError):
    """A mistake of the test that is noticed where the service runs."""


def span(given: Span) -> timedelta:
    """Raises ValueError."""
    if isinstance(given, timedelta):
        return given
    # True and False are numbers to Python, but never mean seconds.
    if isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given):
        return _seconds(given)
    if isinstance(given, str):
        try:
            return parse_duration(given)
        except InvalidDurationError as error:
            message = str(error)
        raise ValueError(f"{message}; a plain number means seconds")
    raise ValueError(
        f"{given!r} is not a duration: write it like '10m', timedelta(minutes=10), or 600 (seconds)"
    )


def span_or_none(given: Span | None) -> timedelta | None:
    return None if given is None else span(given)


def choose(words: type[Word], given: str, what: str) -> Word:
    """The word that was given, in any letter case. Raises ValueError."""
    if isinstance(given, str):
        for word in words:
            if word.casefold() == given.casefold():
                return word
    *others, last = words
    raise ValueError(f"{given!r} is not {what}: expected {', '.join(others)} or {last}")


def _seconds(number: float) -> timedelta:
    try:
        return timedelta(seconds=number)
    except OverflowError:
        pass
    raise ValueError(f"{number!r} seconds is too long")
