"""The server's clock on a machine that sleeps."""

import subprocess
import sys
from pathlib import Path

import pytest

NOT_ALLOWED = 77

# The process moves to another time namespace, where the machine has been up for a day longer: to
# it, that is a day during which the machine was suspended.
ASLEEP = f"""
NOT_ALLOWED = {NOT_ALLOWED}
import ctypes, os
from pathlib import Path
from forewarned.clock import SystemClock, monotonic, monotonic_ns

CLONE_NEWTIME, CLONE_NEWUSER = 0x80, 0x10000000
libc = ctypes.CDLL(None, use_errno=True)
clock = SystemClock()
before, began, began_ns = clock.now(), monotonic(), monotonic_ns()
if libc.unshare(CLONE_NEWTIME | (CLONE_NEWUSER if os.geteuid() else 0)):
    raise SystemExit(NOT_ALLOWED)
Path("/proc/self/timens_offsets").write_text("boottime 86400 0")
other = os.open("/proc/self/ns/time_for_children", os.O_RDONLY)
assert libc.setns(other, CLONE_NEWTIME) == 0, os.strerror(ctypes.get_errno())
passed = (clock.now() - before).total_seconds(), (monotonic() - began).total_seconds()
print(*passed, (monotonic_ns() - began_ns) / 1e9)
"""


def test_time_that_a_machine_sleeps_through_has_passed() -> None:
    """I20: an event whose NotBefore came meanwhile is due, and not a day later.

    I7: and what a node last heard of its store is a day old.
    """
    if not Path("/proc/self/timens_offsets").exists():
        pytest.skip("this system has no time namespaces")
    done = subprocess.run(
        [sys.executable, "-c", ASLEEP], capture_output=True, text=True, check=False
    )
    if done.returncode == NOT_ALLOWED:
        pytest.skip("this user may have no time namespace")
    assert done.returncode == 0, done.stderr

    passed = [float(word) for word in done.stdout.split()]

    assert all(86_400 <= seconds < 86_400 + 60 for seconds in passed), passed
