"""The guests' kernel and first file system: Debian's kernel for clouds, busybox and one script.

They are made once for each kernel and kept, since the packages are larger than what is needed.
"""

import fcntl
import gzip
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.lab import archive
from tools.lab.packages import dependency, packed_files

INIT: Final = Path(__file__).with_name("init.sh")
KERNEL: Final = "linux-image-cloud-amd64"
MODULES: Final = (
    *("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci"),
    *("failover", "net_failover", "virtio_net", "button", "evdev"),
)
"""In the order in which they need each other. A kernel may have some of them built in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    kernel: Path
    first_files: Path


def kept_folder() -> Path:
    """Of this user, for what is slow to make."""
    folder = Path(tempfile.gettempdir()) / f"forewarned-lab-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise PermissionError(f"{folder} is another user's")
    return folder


def image() -> Image:
    """Raises NoLabError if packages can't be had."""
    folder = kept_folder()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        script = INIT.read_bytes()
        found = _image(folder, dependency(KERNEL), hashlib.sha256(script).hexdigest()[:8])
        if not (found.kernel.exists() and found.first_files.exists()):
            _make(folder, found, script)
    return found


def _image(folder: Path, kernel: str, script: str) -> Image:
    return Image(kernel=folder / kernel, first_files=folder / f"{kernel}-{script}.gz")


def _make(folder: Path, wanted: Image, script: bytes) -> None:
    modules: dict[str, bytes] = {}
    for path, content in packed_files(wanted.kernel.name, folder):
        name = Path(path).name
        if name.startswith("vmlinuz"):
            wanted.kernel.write_bytes(content)
        elif name.removesuffix(".ko") in MODULES:
            modules[name] = content
    busybox = dict(packed_files("busybox-static", folder))
    program = busybox.get("bin/busybox") or busybox["usr/bin/busybox"]
    entries = [
        *map(archive.folder, ("bin", "dev", "lib", "proc", "sys")),
        archive.character_device("dev/console", 5, 1),
        archive.program("init", script),
        archive.program("bin/busybox", program),
        *(archive.program(f"lib/{name}", content) for name, content in modules.items()),
    ]
    # The order of modules is the script's: a kernel's own list is not in its package.
    partial = wanted.first_files.with_suffix(".part")
    partial.write_bytes(gzip.compress(archive.packed(entries), compresslevel=1))
    partial.rename(wanted.first_files)
