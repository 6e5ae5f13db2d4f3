"""Requests that are refused for how they were sent, whatever they ask for. Pure.

The guards keep out requests from web pages, proxies, and applications of the VM that were tricked
into sending them. These either lack `Metadata: true` or carry headers of their own.
"""

import re
import socket
from collections.abc import Sequence
from typing import Final

from forewarned.metadata.http.requests import Request
from forewarned.metadata.options import Options
from forewarned.metadata.refusals import Reason, Refusal

_FORWARDED: Final = "x-forwarded-for"
_STRICTLY_FORWARDED: Final = frozenset({_FORWARDED, "forwarded", "via", "x-real-ip"})

# Browsers always send Sec-Fetch-Site. Sec-Fetch-Mode alone does not mean a browser: Node's fetch,
# which agents are written with, sends only that one.
_OF_A_PAGE: Final = frozenset({"origin", "sec-fetch-site", "sec-fetch-dest", "sec-fetch-user"})

_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::[0-9]{0,5})?")


def refusal(request: Request, options: Options) -> Refusal | None:
    return (
        _wrong_form(request)
        or _wrong_host(request, options)
        or _forwarded(request, options)
        or _of_a_page(request)
    )


def metadata_header_refusal(request: Request) -> Refusal | None:
    values = request.values("metadata")
    if len(values) == 1 and values[0].lower() == "true":
        return None
    # Azure's words, odd full stop included.
    return Refusal(
        reason=Reason.NO_METADATA_HEADER,
        message="Bad request: . Required metadata header not specified",
    )


def _wrong_form(request: Request) -> Refusal | None:
    if request.method in {"CONNECT", "TRACE"}:
        return Refusal(
            reason=Reason.WRONG_METHOD,
            message=f"The method {request.method} is not supported.",
            allowed="GET, POST",
        )
    if not request.target.startswith("/") or "#" in request.target:
        return Refusal(
            reason=Reason.MALFORMED,
            message="Bad request. The target must be a path, with or without a query.",
        )
    return None


def _wrong_host(request: Request, options: Options) -> Refusal | None:
    """Guards against DNS rebinding: a stranger's host name may resolve to this address."""
    values = request.values("host")
    if not values and request.http_version == "1.0":
        return None
    if len(values) == 1 and _is_known_host(values[0], options):
        return None
    return Refusal(
        reason=Reason.WRONG_HOST,
        message=(
            "Bad request. The Host header must be an IP address, localhost,"
            " or one of the host names this server is configured with."
        ),
    )


def _is_known_host(value: str, options: Options) -> bool:
    found = _HOST.fullmatch(value)
    if found is None:
        return False
    name = found["name"].lower()
    return name == "localhost" or name in options.hosts or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        if name.startswith("["):
            socket.inet_pton(socket.AF_INET6, name[1:-1])
        else:
            socket.inet_pton(socket.AF_INET, name)
    except OSError:
        return False
    return True


def _forwarded(request: Request, options: Options) -> Refusal | None:
    refused = _STRICTLY_FORWARDED if options.strict_forwarding else {_FORWARDED}
    found = _first_of(request.headers, refused)
    if found is None:
        return None
    return Refusal(
        reason=Reason.FORWARDED,
        message=f"Bad request. Forwarded requests are refused: remove the header {found}.",
    )


def _of_a_page(request: Request) -> Refusal | None:
    found = _first_of(request.headers, _OF_A_PAGE)
    if found is None:
        return None
    return Refusal(
        reason=Reason.FROM_A_PAGE,
        message=f"Requests from web pages are refused: remove the header {found}.",
    )


def _first_of(headers: Sequence[tuple[str, str]], names: frozenset[str] | set[str]) -> str | None:
    for name, _ in headers:
        if name in names:
            return name
    return None
