"""Requests that were read before.

A poller sends the same bytes every time. When one chunk was exactly one whole request without a
body, the same chunk between two requests means the same again: there is nothing to parse.
"""

from typing import Final

from notbefore.metadata.asks import Ask

_MOST: Final = 4096
_LONGEST: Final = 2048


class Recognition:
    __slots__ = ("_asks", "find")

    def __init__(self) -> None:
        self._asks: dict[bytes, Ask] = {}
        self.find = self._asks.get

    def learn(self, chunk: bytes, ask: Ask) -> None:
        if len(chunk) > _LONGEST:
            return
        # Whoever sends something new every time must not keep out those who don't for good.
        if len(self._asks) >= _MOST:
            self._asks.clear()
        self._asks[chunk] = ask
