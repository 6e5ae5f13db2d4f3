"""Watching the requests of VMs: who wants to know, and what is told.

Invariant: while no one watches, no request is looked at for it. Only emulators can be watched.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from forewarned.service.errors import RequestsForbiddenError


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRequest:
    """One request that reached a metadata listener, and its answer."""

    vm: str | None
    """The VM it came from; None where it named no VM that there is."""
    asks: str
    """`events`, `approve`, `instance`, `versions`, `token`, `readiness`; or `refused`."""
    method: str = ""
    """Empty where the request was not HTTP; so is the target."""
    target: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, in the order they came."""
    body: bytes = b""
    """Cut at a few thousand bytes."""
    status: int | None
    """Of the answer. None: a reset, a poll that waits for a change, or a client that gave up."""
    refusal: str = ""
    """Why it was not understood, where it was not."""


Hear = Callable[[SeenRequest], None]


class RequestWatch:
    def __init__(self, *, allowed: bool = True) -> None:
        self._allowed = allowed
        self._listeners: list[Hear] = []
        self._followers: list[Callable[[], None]] = []
        self.is_active = False
        """Whether anyone watches."""

    def tell(self, seen: SeenRequest) -> None:
        for hear in tuple(self._listeners):
            hear(seen)

    @contextmanager
    def heard_by(self, hear: Hear) -> Iterator[None]:
        """Raises RequestsForbiddenError."""
        if not self._allowed:
            raise RequestsForbiddenError
        self._listeners.append(hear)
        self._changed()
        try:
            yield
        finally:
            self._listeners.remove(hear)
            self._changed()

    def follow(self, follower: Callable[[], None]) -> None:
        """Call it whenever `is_active` has changed."""
        self._followers.append(follower)

    def _changed(self) -> None:
        if self.is_active is bool(self._listeners):
            return
        self.is_active = bool(self._listeners)
        for follower in self._followers:
            follower()
