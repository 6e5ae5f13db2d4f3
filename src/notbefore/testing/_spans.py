"""Spans as tests write them: `"15m"`, or a timedelta."""

from datetime import timedelta

from notbefore.durations import parse_duration

Span = str | timedelta


def span(given: Span) -> timedelta:
    """Raises ValueError."""
    # A bare number becomes text, too, and is refused as that: few tests are type-checked.
    return given if isinstance(given, timedelta) else parse_duration(str(given))


def span_or_none(given: Span | None) -> timedelta | None:
    return None if given is None else span(given)
