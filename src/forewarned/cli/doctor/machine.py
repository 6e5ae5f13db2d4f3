"""The machine: its clock."""

import ctypes
from collections.abc import Iterator
from typing import Final

from forewarned.cli.doctor.finding import Finding, warning
from forewarned.runtime.settings import Settings

_ERROR: Final = 5
"""TIME_ERROR of adjtimex(2): the clock is not synchronised."""


class _Timex(ctypes.Structure):
    # All zero asks without setting anything. The kernel's is smaller.
    _fields_ = (("space", ctypes.c_char * 512),)


def clock_state() -> int | None:
    """What adjtimex(2) says; None where there is none."""
    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None
    state = int(adjtimex(ctypes.byref(_Timex())))
    return None if state < 0 else state


def of_clock(settings: Settings, state: int | None) -> Iterator[Finding]:
    """An emulator's clock is its users', so no one minds what the machine's says."""
    if settings.clock.is_real and state == _ERROR:
        yield warning(
            "clock_unsynchronised",
            where="this machine's clock",
            what="nothing synchronises it, so events may start, and tokens expire, too early or too"
            " late",
            todo="Run chrony or systemd-timesyncd.",
        )
