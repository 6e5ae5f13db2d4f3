"""`$filter`, as far as clients use it on lists: `name eq 'web' and location eq 'west'`."""

import re
from collections.abc import Collection
from typing import Final

from forewarned.control.arm.errors import bad_request
from forewarned.control.arm.requests import Asked

_TERM: Final = re.compile(r"\s*(\w+)\s+eq\s+'((?:[^']|'')*)'\s*(?:and\s+(?=\w)|$)", re.IGNORECASE)


def equalities(asked: Asked, known: Collection[str]) -> dict[str, str]:
    """What each field must be. `known` are the fields that can be asked for, in lower case."""
    text = (asked.option("$filter") or "").strip()
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        term = _TERM.match(text, at)
        name = "" if term is None else term[1].lower()
        if term is None or name not in known or name in found:
            raise bad_request(
                "InvalidFilterInQueryString",
                f"Invalid $filter '{text[:200]}': expected comparisons such as"
                f" \"name eq 'x'\", joined by 'and', of {', '.join(sorted(known))}.",
                target="$filter",
            )
        found[name] = term[2].replace("''", "'")
        at = term.end()
    return found
