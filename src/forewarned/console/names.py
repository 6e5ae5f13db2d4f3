"""Names as people expect them: in order, web-2 before web-10, and of many only the first."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote

_NUMBER: Final = re.compile(r"([0-9]+)")


@lru_cache(maxsize=4_000)
def natural(name: str) -> tuple[tuple[str | int, ...], str]:
    """What to sort by. Names that differ only in letter case or leading zeros stay apart."""
    parts = _NUMBER.split(name.casefold())
    # Words and numbers take turns, so that the two are never compared with each other.
    key = tuple([int(part) if odd % 2 else part for odd, part in enumerate(parts)])
    return key, name


@lru_cache(maxsize=4_000)
def segment(name: str) -> str:
    """A name as one part of an address."""
    return quote(name, safe="")


def first_of(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
