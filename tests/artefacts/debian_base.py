"""A small Debian with Python, made here: no registry and no image of others is needed."""

import os
import subprocess
from pathlib import Path
from typing import Final

from tests.packages import give_up, need

PACKAGES: Final = ("python3", "python3-venv", "systemd", "ca-certificates")
SOURCES: Final = (
    Path("/etc/apt/sources.list.d/debian.sources"),
    Path("/etc/apt/sources.list"),
)


def make_base(into: Path) -> Path:
    """A tar of its files. As root, with this machine's own release and mirrors.

    A tar that was made before is taken, if FOREWARNED_TEST_BASE names one: that saves minutes.
    """
    if made := os.environ.get("FOREWARNED_TEST_BASE"):
        return Path(made)
    mmdebstrap = need("mmdebstrap")
    tar = into / "base.tar"
    release = dict(
        line.partition("=")[::2] for line in Path("/etc/os-release").read_text().splitlines()
    )
    sources = [str(path) for path in SOURCES if path.exists() and path.read_text().strip()]
    done = subprocess.run(
        [
            *(mmdebstrap, "--variant=minbase", f"--include={','.join(PACKAGES)}"),
            *(release["VERSION_CODENAME"], str(tar), *sources),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        give_up(f"mmdebstrap can't make a Debian here: {done.stderr[-1000:]}")
    return tar
