"""Ctrl-C for programs that tests start."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """Who is started in here can be interrupted, as from a terminal.

    Whatever runs in the background of a script has Ctrl-C ignored, and hands that on.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
