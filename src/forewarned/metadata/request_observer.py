"""Somebody who wants to know of each request: tests that ask what a handler did."""

from collections.abc import Callable

from forewarned.metadata.routes import Ask
from forewarned.service.records import Caller

Witness = Callable[[Caller | None, Ask, int | None], None]
"""Is told whose a request was, what it asked, and the status of the answer.

None instead of a status stands for no answer: none at all, or none before something changes.
"""
