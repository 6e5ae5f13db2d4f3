"""Pinned wheels for other Pythons and machines than this one, and the tree that they make."""

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TAGS: Final = {
    "glibc": ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_5"),
    "musl": ("musllinux_1_2", "musllinux_1_1"),
}
# Of one build, and nothing that runs: its records, its bill of materials, its sources in C.
_OF_ONE_WHEEL: Final = re.compile(r"/$|\.dist-info/(RECORD$|WHEEL$|sboms/)|\.(c|h|pyx|pxd)$")


class ClashError(Exception):
    """Wheels that are to share a folder can't."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What compiled code is for."""

    python: str
    """Such as 3.11."""
    processor: str
    """As `uname -m` says it."""
    libc: str
    """glibc or musl"""


def tree(wheel: Path, pins: Path, targets: Sequence[Target]) -> dict[str, bytes]:
    """Every file, by name, of the wheel and of what is pinned, for all targets at once.

    Wheels of one package for several targets share a folder: compiled modules have the target in
    their names, and all else is the same.
    """
    first, *others = targets
    with tempfile.TemporaryDirectory() as folder:
        whole = download(pins.read_text(), Path(folder) / "0", first)
        compiled = {_package(each) for each in whole if not each.stem.endswith("-none-any")}
        more = [
            each
            for number, target in enumerate(others, 1)
            for each in download(_only(pins, compiled), Path(folder) / str(number), target)
        ]
        return _files_of([wheel, *whole, *more])


def download(pins: str, into: Path, target: Target) -> list[Path]:
    """What the pins name, as wheels. pip checks each against its hash."""
    into.mkdir()
    requirements = into / "pins.txt"
    requirements.write_text(pins)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    only = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--implementation", "cp"]
    tags = [f"--platform={tag}_{target.processor}" for tag in _TAGS[target.libc]]
    python = f"--python-version={target.python}"
    done = subprocess.run(
        [*command, *only, python, *tags, f"--dest={into}", f"--requirement={requirements}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"pip can't get what is pinned for {target}:\n{done.stderr}")
    return sorted(into.glob("*.whl"))


def _only(pins: Path, packages: set[str]) -> str:
    kept: list[str] = []
    keeps = False
    for line in pins.read_text().splitlines(keepends=True):
        if line[:1].isalpha():
            keeps = line.partition("==")[0] in packages
        kept += [line] if keeps else []
    return "".join(kept)


def _package(wheel: Path) -> str:
    return wheel.name.partition("-")[0].replace("_", "-").lower()


def _files_of(wheels: Iterable[Path]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for wheel in wheels:
        for name, content in _members(wheel):
            if found.setdefault(name, content) != content:
                raise ClashError(f"{name} of {wheel.name} differs from another wheel's")
    return dict(sorted(found.items()))


def _members(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """By the names they are installed as. What describes one wheel alone is left out."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            _, _, aside = name.partition(".data/")
            if aside and not aside.startswith(("purelib/", "platlib/")):
                continue  # scripts: ours are written by those who know where Python will be
            if not _OF_ONE_WHEEL.search(name):
                yield aside.partition("/")[2] or name, archive.read(name)
