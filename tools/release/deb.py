"""Debian packages of the agent and of the server: `make deb`.

Each brings all that it needs below /opt/forewarned, pinned, so installing needs no network, and no
other program's packages get in the way. Its tree is an environment of Python's that serves every
version we support: compiled modules of all of them lie side by side.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.release.python_distributions import ROOT, build_environment, build_wheel
from tools.release.wheels import Target, tree

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
PROCESSORS: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_FILES: Final = ROOT / "packaging"
_EXAMPLES: Final = ROOT / "examples"
_SYSTEM: Final = "usr/lib/systemd/system"
_COMPLETIONS: Final = (
    "usr/share/bash-completion/completions",
    "usr/share/zsh/vendor-completions",
    "usr/share/fish/vendor_completions.d",
)
_BY_HAND: Final = "/opt/forewarned/bin/"
"""Where units look for what was installed with pip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    name: str
    description: str
    pins: Path
    units: Mapping[str, Path]
    """By name, the first is the package's own."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Others, by where they go."""
    config: tuple[str, Path]
    state: str
    priority: int
    """Of its `forewarned` over that of the other package, where both are installed."""
    tmpfiles: str = ""

    @property
    def home(self) -> str:
        return f"/opt/forewarned/{self.name.rpartition('-')[2]}"


AGENT: Final = Package(
    name="forewarned-agent",
    description="prepare a VM for scheduled events, approve them, and recover\n"
    " The agent reads the scheduled events of the VM it runs on, from Azure or from\n"
    " Forewarned. It drains, stops, approves when ready, and puts things back.\n"
    " The command line is in this package, too.",
    pins=ROOT / "constraints" / "agent.txt",
    units={"forewarned-agent.service": _EXAMPLES / "agent" / "forewarned-agent.service"},
    config=("etc/forewarned/agent.toml", _FILES / "debian" / "agent.toml"),
    state="/var/lib/forewarned-agent",
    tmpfiles="d /var/lib/forewarned-agent 0700 root root -\n",
    priority=10,
)
_UNITS: Final = (
    "forewarned-server.service",
    "forewarned-metadata-address.service",
    "forewarned-backup.service",
    "forewarned-backup.timer",
)
SERVER: Final = Package(
    name="forewarned-server",
    description="give notice of interruptions to virtual machines\n"
    " The service that announces scheduled events to VMs in Azure's wire formats,\n"
    " and starts them when the VMs are ready, with its console, its command line,\n"
    " and an emulator for tests.",
    pins=ROOT / "constraints" / "server.txt",
    units={name: _FILES / "systemd" / name for name in _UNITS},
    files={
        "usr/lib/sysusers.d/forewarned-server.conf": _FILES / "systemd/forewarned-server.sysusers",
        "usr/lib/tmpfiles.d/forewarned-server.conf": _FILES / "systemd/forewarned-server.tmpfiles",
    },
    config=("etc/forewarned/forewarned.toml", _FILES / "systemd" / "forewarned.toml"),
    state="/var/lib/forewarned",
    priority=20,
)


def build_agent_deb(into: Path) -> Path:
    return build(AGENT, into)


def build_server_deb(into: Path) -> Path:
    return build(SERVER, into)


def build(package: Package, into: Path) -> Path:
    """For this machine's architecture."""
    architecture = _output("dpkg", "--print-architecture").strip()
    if architecture not in PROCESSORS:
        sys.exit(f"there are no packages for {architecture}, only for {', '.join(PROCESSORS)}")
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder) / "dist")
        version = wheel.name.split("-")[1]
        root = Path(folder) / "root"
        _write_tree(root, package, wheel, PROCESSORS[architecture])
        _write_system_files(root, package, version)
        _write_control(root, package, version, architecture)
        _normalise(root)
        deb = into / f"{package.name}_{version}_{architecture}.deb"
        # One thread: how many there are decides where xz splits what it compresses.
        flags = ("--root-owner-group", "-Zxz", "--threads-max=1", "--build")
        _output("dpkg-deb", *flags, str(root), str(deb))
    return deb


def _write_tree(root: Path, package: Package, wheel: Path, processor: str) -> None:
    home = root / package.home.strip("/")
    library = home / "lib" / "site-packages"
    targets = [Target(python=each, processor=processor, libc="glibc") for each in PYTHONS]
    for name, content in tree(wheel, package.pins, targets).items():
        _write(library / name, content)
    for python in PYTHONS:
        link = home / "lib" / f"python{python}" / "site-packages"
        link.parent.mkdir()
        link.symlink_to("../site-packages")
    _write(home / "pyvenv.cfg", b"home = /usr/bin\ninclude-system-site-packages = false\n")
    (home / "bin").mkdir()
    (home / "bin" / "python3").symlink_to("/usr/bin/python3")
    script = f"#!{package.home}/bin/python3 -I\nfrom forewarned.cli import main\n\nmain()\n"
    _write(home / "bin" / "forewarned", script.encode(), mode=0o755)
    for shell in ("bash", "zsh", "fish"):
        words = [sys.executable, "-m", "forewarned", "completion", shell]
        _write(home / "share" / f"forewarned.{shell}", _output(*words).encode())


def _write_system_files(root: Path, package: Package, version: str) -> None:
    for name, path in package.units.items():
        text = path.read_text(encoding="utf-8").replace(_BY_HAND, f"{package.home}/bin/")
        _write(root / _SYSTEM / name, text.encode())
    for name, path in package.files.items():
        _write(root / name, path.read_bytes())
    if package.tmpfiles:
        _write(root / f"usr/lib/tmpfiles.d/{package.name}.conf", package.tmpfiles.encode())
    where, config = package.config
    _write(root / where, config.read_bytes())
    for folder in _COMPLETIONS:  # alternatives make links there, and no folders
        (root / folder).mkdir(parents=True)
    docs = root / "usr/share/doc" / package.name
    _write(docs / "copyright", (_FILES / "debian" / "copyright").read_bytes())
    news = f"{package.name} ({version}) unstable; urgency=low\n\n  * See the release notes.\n\n"
    news += " -- Forewarned <forewarned@localhost>  Sun, 02 Feb 2020 00:00:00 +0000\n"
    _write(docs / "changelog.gz", gzip.compress(news.encode(), 9, mtime=0))


def _write_control(root: Path, package: Package, version: str, architecture: str) -> None:
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum(path.stat().st_size for path in files) // 1024
    control = root / "DEBIAN"
    newest = PYTHONS[-1].split(".")
    fields = {
        "Package": package.name,
        "Version": version,
        "Architecture": architecture,
        "Maintainer": "Forewarned <forewarned@localhost>",
        "Installed-Size": str(size),
        "Depends": f"libc6 (>= 2.28), python3 (>= {PYTHONS[0]}),"
        f" python3 (<< {newest[0]}.{int(newest[1]) + 1}~),"
        " systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles",
        "Section": "admin",
        "Priority": "optional",
        "Description": package.description,
    }
    text = "".join(f"{name}: {value}\n" for name, value in fields.items())
    _write(control / "control", text.encode())
    _write(control / "conffiles", f"/{package.config[0]}\n".encode())
    sums = "".join(
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  "
        f"{path.relative_to(root)}\n"
        for path in files
    )
    _write(control / "md5sums", sums.encode())
    words = {
        "PACKAGE": package.name,
        "HOME": package.home,
        "UNITS": " ".join(package.units),
        "STATE": package.state,
        "PRIORITY": str(package.priority),
    }
    for name in ("postinst", "prerm", "postrm"):
        script = (_FILES / "debian" / name).read_text(encoding="utf-8")
        filled = re.sub(r"@([A-Z]+)@", lambda found: words[found[1]], script)
        _write(control / name, filled.encode(), mode=0o755)


def _write(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def _normalise(root: Path) -> None:
    """Neither this user's umask nor this hour is in a package."""
    date = int(build_environment()["SOURCE_DATE_EPOCH"])
    for path in [root, *root.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
        os.utime(path, (date, date), follow_symlinks=False)


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        sys.exit(f"{command[0]} is not installed: packages are built on Debian or Ubuntu")
    done = subprocess.run(
        command, env=build_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{done.stderr}")
    return done.stdout
