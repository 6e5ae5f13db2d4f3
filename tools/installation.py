"""Installs at once what tests would install one by one: `python -m tools.installation`.

`make test` runs it beside its checks, so that no test waits for apt. Nothing depends on it: a test
asks for what it needs, and where that can't be had it says so.
"""

import contextlib
import os
import subprocess
import sys
from importlib.util import find_spec

from tests.packages import FOR_LIBVIRT_LIBRARY, HEADLESS_BROWSER, PROGRAMS, ROOT, find, install
from tests.postgresql import fake_time, servers
from tools.lab import packages as lab
from tools.lab.image import image


def main() -> None:
    if os.geteuid() != 0 or find("apt-get") is None:
        return
    servers.forgo_cluster()
    if missing := _missing():
        print(f"installing with apt-get: {' '.join(missing)}", flush=True)
        install(*missing)
    if find_spec("libvirt") is None:
        subprocess.run([sys.executable, ROOT / "tools" / "environment.py", "libvirt"], check=False)
    with contextlib.suppress(lab.NoLabError):
        lab.need_programs()
        image()


def _missing() -> list[str]:
    """Packages that bring something which is not there."""
    programs = PROGRAMS | lab.PROGRAMS | {HEADLESS_BROWSER: HEADLESS_BROWSER}
    missing = [package for program, package in programs.items() if find(program) is None]
    if servers.installed() is None:
        missing.append(servers.PACKAGE)
    if fake_time.installed() is None:
        missing.append(fake_time.PACKAGE)
    if not lab.QEMU_DRIVER.exists():
        missing.append(lab.QEMU_DRIVER_PACKAGE)
    if find_spec("libvirt") is None:
        missing.extend(FOR_LIBVIRT_LIBRARY)
    return missing


if __name__ == "__main__":
    main()
