"""forewarned-agent.pyz: the base install in one file, for VMs that have Python and no pip."""

import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.release.python_distributions import ROOT, build_environment, build_wheel
from tools.release.wheels import Target, tree

PINS: Final = ROOT / "constraints" / "agent.txt"
MAIN: Final = Path(__file__).with_name("pyz_main.py")
TARGETS: Final = tuple(
    Target(python=python, processor=processor, libc=libc)
    for python in ("3.11", "3.12", "3.13", "3.14")
    for processor in ("x86_64", "aarch64")
    for libc in ("glibc", "musl")
)


def build_pyz(into: Path) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        files = tree(build_wheel(Path(folder)), PINS, TARGETS)
    pyz = into / "forewarned-agent.pyz"
    with pyz.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            _add(archive, "__main__.py", MAIN.read_bytes())
            for name, content in files.items():
                if not name.endswith(".pyi"):
                    _add(archive, name, content)
    pyz.chmod(0o755)
    return pyz


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    date = datetime.fromtimestamp(int(build_environment()["SOURCE_DATE_EPOCH"]), UTC)
    member = zipfile.ZipInfo(name, date.timetuple()[:6])
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    archive.writestr(member, content)
