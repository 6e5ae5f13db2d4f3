"""For what comes true in another process."""

import threading
import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 60.0


def wait_until(
    holds: Callable[[], bool], *, within: float = PATIENCE, every: float = 0.02
) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < began + within, f"not within {within} s"
        pause.wait(every)
    return time.monotonic() - began
