"""What happened, in one line each: the last lines are what a failing seed is read by."""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from forewarned.core.transitions import EventTransition, Transition

KEPT: Final = 60


class Story:
    def __init__(self, now: Callable[[], datetime], *, kept: int | None = KEPT) -> None:
        """`kept` is how many lines; None for all."""
        self._now = now
        self._lines: deque[str] = deque(maxlen=kept)

    def tell(self, who: str, what: str) -> None:
        self._lines.append(f"{self._now():%m-%d %H:%M:%S.%f}  {who:<12} {what}")

    def lines(self) -> Iterator[str]:
        return iter(self._lines)


def in_words(fact: Transition) -> str:
    words = f"{type(fact).__name__} in {fact.scope_id}"
    if isinstance(fact, EventTransition):
        event = fact.event
        due = "" if event.not_before is None else f", not before {event.not_before:%H:%M:%S}"
        return f"{words}: {event.type} {event.id[:8]} of {' '.join(event.resources)}{due}"
    return words
