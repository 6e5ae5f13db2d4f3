"""Messages on a stream: each with its length in front."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a message. What is larger is sent in parts, so a larger one is no message of ours."""

_HEAD: Final = 4

T = TypeVar("T")


class FeedBrokenError(Exception):
    """The other end said what it can't mean: only a new connection and a snapshot help."""


def frame(payload: bytes) -> bytes:
    if len(payload) > LARGEST:
        raise FeedBrokenError(f"a message of {len(payload)} bytes is longer than {LARGEST}")
    return len(payload).to_bytes(_HEAD, "big") + payload


class Splitter:
    """Takes bytes as they arrive and gives the messages that are whole."""

    def __init__(self) -> None:
        self._partial = bytearray()

    def take(self, received: bytes) -> list[bytes]:
        """Raises FeedBrokenError."""
        partial = self._partial
        partial += received
        whole: list[bytes] = []
        start = 0
        while len(partial) - start >= _HEAD:
            length = int.from_bytes(partial[start : start + _HEAD], "big")
            if length > LARGEST:
                raise FeedBrokenError(f"a message of {length} bytes is longer than {LARGEST}")
            end = start + _HEAD + length
            if len(partial) < end:
                break
            whole.append(bytes(partial[start + _HEAD : end]))
            start = end
        del partial[:start]
        return whole


def in_parts(items: Iterable[T], *, weight: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """The items in order, in lists that weigh about as much as is allowed, and none of them empty.

    A list ends with the item that makes it heavy enough, so one heavy item is a list of its own.
    """
    part: list[T] = []
    weighed = 0
    for item in items:
        part.append(item)
        weighed += weight(item)
        if weighed >= most:
            yield part
            part, weighed = [], 0
    if part:
        yield part
