"""Durations as people write them: `14m59s`, and `PT14M59S` as Azure's models have it.

What `format_duration` writes, `parse_duration` reads back unchanged.
"""

import re
from datetime import timedelta
from functools import lru_cache
from typing import Final

_SHORT: Final = re.compile(
    r"(?:(?P<days>[0-9]+)d)?(?:(?P<hours>[0-9]+)h)?(?:(?P<minutes>[0-9]+)m)?"
    r"(?:(?P<seconds>[0-9]+(?:\.[0-9]{1,6})?)s)?"
    r"(?:(?P<milliseconds>[0-9]+)ms)?(?:(?P<microseconds>[0-9]+)us)?"
)
# Years and months have no fixed length, so Azure's models don't use them, and neither do we.
_ISO: Final = re.compile(
    r"P(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?"
    r"(?:(?P<seconds>[0-9]+(?:\.[0-9]{1,6})?)S)?)?"
)
_UNITS: Final = (
    ("d", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("m", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
    ("ms", timedelta(milliseconds=1)),
    ("us", timedelta(microseconds=1)),
)
# The longest timedelta has nine digits of days; a longer text is a mistake.
_LONGEST_TEXT: Final = 64


class InvalidDurationError(ValueError):
    def __init__(self, text: str) -> None:
        shown = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
        super().__init__(f"{shown!r} is not a duration: write it like 90s, 14m59s, 7d or PT5M")
        self.text = text


# A request names one in most bodies, mostly one of a few, while VMs wait for what comes of it.
@lru_cache(maxsize=1_000)
def parse_duration(text: str) -> timedelta:
    """Zero needs no unit; every other number does."""
    if text == "0":
        return timedelta(0)
    found = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if found is None or len(text) > _LONGEST_TEXT:
        raise InvalidDurationError(text)
    parts = {unit: number for unit, number in found.groupdict().items() if number is not None}
    if not parts:
        raise InvalidDurationError(text)
    # Whole seconds and their fraction apart: as one float, a long span would lose its last digits.
    whole, _, fraction = parts.pop("seconds", "0").partition(".")
    try:
        return timedelta(
            seconds=int(whole),
            **{unit: int(number) for unit, number in parts.items()},
        ) + timedelta(microseconds=int(fraction.ljust(6, "0")))
    except OverflowError:
        raise InvalidDurationError(text) from None


def format_duration(duration: timedelta) -> str:
    """`14m59s`. A negative one, for times gone by, has a leading minus and can't be read back."""
    if duration < timedelta(0):
        return f"-{format_duration(-duration)}"
    parts = []
    left = duration
    for unit, length in _UNITS:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
