"""What the lab takes from Debian: some packages installed, and files of others, unpacked."""

import io
import os
import platform
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.packages import find, install

PROGRAMS: Final = {
    "ip": "iproute2",
    "unshare": "util-linux",
    "dpkg-deb": "dpkg",
    "qemu-system-x86_64": "qemu-system-x86",
    "libvirtd": "libvirt-daemon",
}
"""Each with the package that brings it."""
QEMU_DRIVER_PACKAGE: Final = "libvirt-daemon-driver-qemu"
QEMU_DRIVER: Final = Path(
    "/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so"
)


class NoLabError(Exception):
    """The lab can't be set up here."""


def need_programs() -> None:
    """Raises NoLabError."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise NoLabError("the lab runs on Linux on x86-64 only")
    if os.geteuid() != 0:
        raise NoLabError("the lab needs root: it makes namespaces, and runs libvirt")
    for program, package in PROGRAMS.items():
        if find(program) is None:
            install(package)
        if find(program) is None:
            raise NoLabError(f"{program} is not installed: `apt install {package}` brings it")
    if not QEMU_DRIVER.exists():
        install(QEMU_DRIVER_PACKAGE)
    if subprocess.run(["unshare", "--net", "--mount", "--uts", "true"], check=False).returncode:
        raise NoLabError("the lab needs namespaces, which are not allowed here")
    if not Path("/dev/net/tun").exists():
        raise NoLabError("the lab needs /dev/net/tun, to connect its guests")
    if not QEMU_DRIVER.exists():
        raise NoLabError(f"no QEMU driver: `apt install {QEMU_DRIVER_PACKAGE}` brings it")


def packed_files(package: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """The paths and contents of a package's files. It is downloaded, and not installed."""
    for file in folder.glob("*.deb"):
        file.unlink()
    if not _download(package, folder):
        # Lists of packages may be missing or old, as in a fresh container.
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        if not _download(package, folder):
            raise NoLabError(f"apt can't download {package}")
    (file,) = folder.glob("*.deb")
    unpacked = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", str(file)], capture_output=True, check=True
    )
    file.unlink()
    with tarfile.open(fileobj=io.BytesIO(unpacked.stdout)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name.removeprefix("./"), content.read()


def dependency(package: str) -> str:
    """The first package that this one depends on: that of the newest kernel, for instance."""
    shown = subprocess.run(
        ["apt-cache", "depends", "--important", package],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in shown.stdout.splitlines():
        if "Depends:" in line:
            return line.partition("Depends:")[2].strip()
    raise NoLabError(f"apt knows no package {package}")


def _download(package: str, folder: Path) -> bool:
    done = subprocess.run(
        ["apt-get", "download", "--quiet", package], cwd=folder, capture_output=True, check=False
    )
    return done.returncode == 0
