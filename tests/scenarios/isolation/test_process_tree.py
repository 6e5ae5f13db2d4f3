"""Which processes a signal is sent to."""

import os
import subprocess
import sys
import textwrap

import pytest

from forewarned.scenarios.isolation.process_tree import AdoptedTree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")


def test_the_dead_are_not_found() -> None:
    """Else each that has died since the last look is a reason to look once more."""
    with (
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as living,
        subprocess.Popen(["true"]) as dead,
    ):
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)

        found = AdoptedTree().living()

        assert living.pid in found
        assert dead.pid not in found


def test_a_process_whose_first_thread_has_ended_is_found() -> None:
    script = textwrap.dedent(
        """
        import ctypes, sys, threading
        def run():
            # Until the first thread is a zombie.
            while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z": pass
            print("up", flush=True)
            sys.stdin.read()
        threading.Thread(target=run).start()
        ctypes.CDLL(None).syscall(60 if sys.argv[1] == "x86_64" else 93, 0)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, os.uname().machine],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"

        assert process.pid in AdoptedTree().living()

        process.kill()
