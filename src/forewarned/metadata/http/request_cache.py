"""Requests that were read before.

A poller sends the same bytes every time. When one chunk was exactly one whole request without a
body, the same chunk between two requests means the same again: there is nothing to parse.
"""

from typing import Final

from forewarned.metadata.routes import Ask

_MOST: Final = 4096
_LONGEST: Final = 2048


class RequestCache:
    __slots__ = ("_asks", "_most", "find")

    def __init__(self, *, most: int = _MOST) -> None:
        """`most` requests are known at a time; with 0, every one is read as if for the first."""
        self._most = most
        self._asks: dict[bytes, Ask] = {}
        self.find = self._asks.get

    def learn(self, chunk: bytes, ask: Ask) -> None:
        if len(chunk) > _LONGEST or not self._most:
            return
        # Whoever sends something new every time must not keep out those who don't for good.
        if len(self._asks) >= self._most:
            self._asks.clear()
        self._asks[chunk] = ask
