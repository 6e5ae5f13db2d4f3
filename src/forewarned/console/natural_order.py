"""Names in the order people expect: web-2 before web-10."""

import re
from typing import Final

_NUMBER: Final = re.compile(r"([0-9]+)")


def natural(name: str) -> tuple[list[str | int], str]:
    """What to sort by. Names that differ only in letter case or leading zeros stay apart."""
    parts = _NUMBER.split(name.casefold())
    # Words and numbers take turns, so that the two are never compared with each other.
    key: list[str | int] = [int(part) if odd % 2 else part for odd, part in enumerate(parts)]
    return key, name
