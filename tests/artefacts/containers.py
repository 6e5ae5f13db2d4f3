"""podman with a store of its own, as it runs where systemd does not, and where limits are low."""

import resource
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.packages import install, need

PACKAGES: Final = ("podman", "buildah", "runc", "netavark", "aardvark-dns", "iptables")


class Podman:
    """Leaves nothing in the machine's own stores."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "networks").mkdir()
        # Of the rights that a container is given, some raise limits beyond what we have ourselves.
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65536)
        self.limits = (f"--ulimit=nofile={files}:{files}", "--ulimit=nproc=4096:4096")

    @classmethod
    def needed(cls, folder: Path) -> "Podman":
        for package in PACKAGES:
            install(package)
        need("podman")
        need("runc")
        return cls(folder)

    def __call__(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        places = (f"--root={self._folder}/root", f"--runroot={self._folder}/run")
        networks = (f"--network-config-dir={self._folder}/networks", "--network-backend=netavark")
        kinds = ("--storage-driver=overlay", "--cgroup-manager=cgroupfs", "--runtime=runc")
        done = subprocess.run(
            ["podman", *places, *networks, *kinds, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    def run(self, *words: str) -> str:
        return self("run", *self.limits, *words).stdout

    def close(self) -> None:
        self("rm", "--force", "--all", "--time=1", check=False)
        self("network", "prune", "--force", check=False)
        subprocess.run(["umount", f"{self._folder}/root/overlay"], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)
