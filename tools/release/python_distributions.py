"""The wheel and the sdist, built by hatchling, which is pinned: nothing is fetched."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# The date of every file in every artefact: a zip knows no earlier year than 1980, and hatchling
# takes this one itself, so `pip wheel` in an unpacked sdist makes the same wheel, too.
FIXED_DATE: Final = "1580601600"


def build_wheel(into: Path, *, source: Path = ROOT) -> Path:
    _hatchling("wheel", source=source, into=into)
    [wheel] = into.glob("forewarned-*.whl")
    return wheel


def build_sdist(into: Path, *, source: Path = ROOT) -> Path:
    _hatchling("sdist", source=source, into=into)
    [sdist] = into.glob("forewarned-*.tar.gz")
    return sdist


def unpack_sdist(sdist: Path, into: Path) -> Path:
    """Where the tree is that builds from it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    [tree] = into.iterdir()
    return tree


def build_environment() -> dict[str, str]:
    """The caller's environment, with a date for those who must write one."""
    return {"SOURCE_DATE_EPOCH": FIXED_DATE, **os.environ}


def _hatchling(target: str, *, source: Path, into: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    done = subprocess.run(
        [*command, "--directory", str(into)],
        cwd=source,
        env=build_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"hatchling can't build the {target}:\n{done.stdout}{done.stderr}")
