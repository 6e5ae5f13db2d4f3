"""Long lists a page at a time, as ARM's clients walk through them by `nextLink`.

A page begins after the key of the last item before it, not at a number: items that come and go
meanwhile neither repeat others nor hide them.
"""

import base64
import binascii
import heapq
import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar
from urllib.parse import quote

from forewarned.control.arm.errors import bad_request, invalid_parameter
from forewarned.control.arm.requests import Asked

PAGE: Final = 250
"""Items, at most."""

T = TypeVar("T")

_TOKEN: Final = "$skiptoken"  # noqa: S105  # a place in a list is no secret
_MARK: Final = "1:"
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")


def page(
    items: Iterable[T],
    asked: Asked,
    key: Callable[[T], str],
    *,
    show: Callable[[T], object] = lambda item: item,
) -> dict[str, object]:
    """`value` and, where there is more, `nextLink`. Only what is on the page is shown.

    Each item has a key of its own, the same in every request, and the list goes by its order.
    """
    after = _after(asked)
    size = _size(asked)
    keyed = ((key(item), item) for item in items)
    rest = [(name, item) for name, item in keyed if after is None or name > after]
    # One more than is shown tells whether there is more.
    first = heapq.nsmallest(size + 1, rest, key=lambda one: one[0])
    shown = first[:size]
    body: dict[str, object] = {"value": [show(item) for _, item in shown]}
    if len(first) > size:
        body["nextLink"] = _next_link(asked, shown[-1][0])
    return body


def _size(asked: Asked) -> int:
    text = asked.option("$top")
    if text is None:
        return PAGE
    if not _COUNT.fullmatch(text):
        raise invalid_parameter(
            "$top", f"$top is '{text[:40]}': expected a whole number of at least 1."
        )
    return min(int(text), PAGE)


def _after(asked: Asked) -> str | None:
    token = asked.option(_TOKEN)
    if token is None:
        return None
    try:
        text = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (UnicodeError, binascii.Error):
        text = ""
    if not text.startswith(_MARK):
        raise bad_request(
            "InvalidSkipToken",
            "The $skiptoken was not issued by this server: start again without it.",
            target=_TOKEN,
        )
    return text.removeprefix(_MARK)


def _next_link(asked: Asked, last: str) -> str:
    token = base64.urlsafe_b64encode(f"{_MARK}{last}".encode()).decode()
    query = {**asked.query, _TOKEN: token}
    return f"{asked.root}{asked.url}?" + "&".join(
        f"{quote(name, safe='$')}={quote(value, safe='')}" for name, value in query.items()
    )
