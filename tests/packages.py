"""Programs of Debian's packages that tests need: installed where that can be done."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS: Final = {
    "curl": "curl",
    "haproxy": "haproxy",
    "nft": "nftables",
    "pgbouncer": "pgbouncer",
    "psql": "postgresql-client",
    "strace": "strace",
    "systemd-analyze": "systemd",
}
"""What tests run, each with the package that brings it."""
RARE_PROGRAMS: Final = {
    "ipvsadm": "ipvsadm",
    "kubectl": "kubernetes-client",
    "lintian": "lintian",
    "mmdebstrap": "mmdebstrap",
    "podman": "podman",
    "podman-compose": "podman-compose",
    "promtool": "prometheus",
    "runc": "runc",
}
"""What only thorough tests and those of artefacts run."""
HEADLESS_BROWSER: Final = "chromium-headless-shell"
"""Chromium without what only a person at a screen needs: a third less work for the same pages."""
FOR_LIBVIRT_LIBRARY: Final = ("gcc", "pkg-config", "libvirt-dev")


def need(program: str) -> str:
    """The program's path. Where it can't be had, the test fails in CI, and is skipped elsewhere."""
    path = find(program)
    if path is None:
        package = (PROGRAMS | RARE_PROGRAMS)[program]
        install(package)
        path = find(program)
        if path is None:
            give_up(f"{program} is not installed: `apt install {package}` brings it")
    return path


def need_libvirt_library() -> None:
    """Builds libvirt's Python library into .venv, once. What imports it is imported afterwards."""
    if find_spec("libvirt") is not None:
        return
    install(*FOR_LIBVIRT_LIBRARY)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "environment.py"), "libvirt"],
        capture_output=True,
        text=True,
        check=False,
    )
    invalidate_caches()
    if find_spec("libvirt") is None:
        give_up(
            f"libvirt's Python library can't be built: `apt install {' '.join(FOR_LIBVIRT_LIBRARY)}`"
            f" brings what it needs. {done.stderr[-500:]}"
        )


def install(*packages: str) -> None:
    """Does nothing where this user may not, or where there is no apt."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    # Workers of one test run would be in each other's way.
    with (Path(tempfile.gettempdir()) / "forewarned-tests-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Lists of packages may be old, or absent from a container.
        if not _apt_get("install", "--yes", "--no-install-recommends", *packages):
            _apt_get("update")
            _apt_get("install", "--yes", "--no-install-recommends", *packages)


def _apt_get(*arguments: str) -> bool:
    done = subprocess.run(
        # Something else on this machine may be installing as well.
        ["apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def give_up(reason: str) -> NoReturn:
    """Fail in CI, where everything has to be there; skip the test elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def find(program: str) -> str | None:
    """The program's path, even where only root's PATH has it."""
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
