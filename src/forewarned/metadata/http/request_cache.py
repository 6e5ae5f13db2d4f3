"""Requests that were parsed before, by their bytes.

A polling client sends the same bytes every time. If a chunk was exactly one whole request without a
body, then the same chunk between two requests means the same again, and need not be parsed.
"""

from typing import Final

from forewarned.metadata.routes import RoutedRequest

_MOST: Final = 4096
_LONGEST: Final = 2048


class RequestCache:
    __slots__ = ("_is_paused", "_most", "_unanswered", "find")

    def __init__(self, *, most: int = _MOST) -> None:
        """Holds `most` requests; with 0 it holds none, and every request is parsed."""
        self._most = most
        self._is_paused = False
        self._unanswered: dict[bytes, RoutedRequest] = {}
        self.find = self._unanswered.get

    def pause(self, *, is_paused: bool) -> None:
        """Hold none for a while, so that every request is parsed."""
        self._is_paused = is_paused
        self._unanswered.clear()

    def learn(self, chunk: bytes, request: RoutedRequest) -> None:
        if len(chunk) > _LONGEST or self._is_paused or not self._most:
            return
        # A client that sends different bytes every time must not fill the cache for good.
        if len(self._unanswered) >= self._most:
            self._unanswered.clear()
        self._unanswered[chunk] = request
