"""The thread in which libvirt's client library sees to its timers and events.

Without it a connection to a host that has died would never be given up, and no reboot be heard of.
"""

import contextlib
import threading
from collections.abc import Iterator

import libvirt


@contextlib.contextmanager
def event_thread() -> Iterator[None]:
    """Enter it before the first connection is opened."""
    libvirt.registerErrorHandler(_ignore, None)
    # Once for each process; libvirt ignores further registrations.
    libvirt.virEventRegisterDefaultImpl()
    never = -1
    timer = libvirt.virEventAddTimeout(never, _do_nothing, None)
    is_over = threading.Event()

    def run() -> None:
        while not is_over.is_set():
            libvirt.virEventRunDefaultImpl()

    thread = threading.Thread(target=run, daemon=True, name="libvirt-events")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        # It fires at once, and ends the thread's rest.
        libvirt.virEventUpdateTimeout(timer, 0)
        thread.join()
        libvirt.virEventRemoveTimeout(timer)


def _do_nothing(timer: int, opaque: None) -> None:
    pass


def _ignore(context: None, error: list[object]) -> None:
    """Errors are raised as well; libvirt would print each to stderr."""
