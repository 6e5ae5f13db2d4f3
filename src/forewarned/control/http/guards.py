"""Which pages may talk to this listener from a browser: only its own.

A page of some other site, open on the same laptop, can send requests to loopback. It can't choose
the Host header, though, nor leave Origin out of a request that changes something.
"""

import ipaddress
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarned.control.http.errors import ForeignHostError, ForeignOriginError, RequestError

_ALWAYS: Final = frozenset({"localhost"})
_AUTHORITY: Final = re.compile(r"(?:\[(?P<address>[^\[\]]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]*)?")


class SameSite:
    """Refuses requests for another name, or from pages of another origin."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        allowed_hosts: frozenset[str],
        refuse: Callable[[RequestError], Response],
    ) -> None:
        self._app = app
        self._refuse = refuse
        self._allowed = _ALWAYS | {host.lower() for host in allowed_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = self._error(scope) if scope["type"] == "http" else None
        app = self._app if error is None else self._refuse(error)
        await app(scope, receive, send)

    def _error(self, scope: Scope) -> RequestError | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return ForeignHostError(", ".join(hosts))
        own = f"{scope['scheme']}://{hosts[0]}"
        for origin in headers.getlist("origin"):
            if origin.lower() != own.lower():
                return ForeignOriginError(origin)
        return None

    def _is_ours(self, authority: str) -> bool:
        name = _name(authority)
        return name in self._allowed or _is_address(name)


def _name(authority: str) -> str:
    """Without the port: `[::1]:8170` is `::1`. What is no authority at all is no name either."""
    found = _AUTHORITY.fullmatch(authority)
    return (found["address"] or found["name"]).lower().removesuffix(".") if found else ""


# Most requests are for the same few names, and to see that one is an address takes a while.
@lru_cache(maxsize=100)
def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
