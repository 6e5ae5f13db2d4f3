"""A callback that sees every request: tests ask it what a handler did."""

from collections.abc import Callable

from forewarned.metadata.routes import RoutedRequest
from forewarned.service.records import Caller

RequestObserver = Callable[[Caller | None, RoutedRequest, int | None], None]
"""Gets the caller, the request, and the status of the answer.

A status of None means that there was no answer: a reset, a poll that waits for a change, or a
client that gave up.
"""
