"""The Debian packages in a chroot: installed, used, upgraded, removed and purged."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.artefacts.programs import Program, approve_by_agent, read_with_curl
from tests.end_to_end.server_process import serving
from tests.packages import give_up, need
from tools.release.deb import AGENT, SERVER, Package, build

NEXT: Final = "99.0"
CHOSEN: Final = {
    "bogus-mail-host": "there is no address to write to yet",
    "bogus-mail-host-in-debian-changelog": "as above",
    "dir-or-file-in-opt": "the packages are not Debian's own, and keep out of its way",
    "maintainer-script-calls-systemctl": "to reload, and to disable what is removed",
    "script-not-executable": "modules of other people's packages, run by import",
    "systemd-service-file-refers-to-unusual-wantedby-target": "an address for one service",
    "unstripped-binary-or-object": "wheels are taken as their authors made them",
    "unusual-interpreter": "as for scripts",
    "wrong-path-for-interpreter": "the package's own environment",
}
"""What lintian says, and why we leave it so."""
PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A Debian in a folder. It has this machine's network, and no systemd that runs."""

    root: Path

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["chroot", str(self.root), *words],
            env={"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, deb: Path) -> None:
        """From the file alone: what it depends on is there, or dpkg refuses."""
        shutil.copy(deb, self.root / "tmp")
        self.run("dpkg", "--install", f"/tmp/{deb.name}")

    def path(self, inside: str) -> Path:
        return self.root / inside.strip("/")

    def program(self, folder: Path, *before: str) -> Program:
        """`forewarned` in a folder of the chroot; `before` is what starts it."""
        chroot = ("chroot", str(self.root), "/usr/bin/env", f"--chdir={folder}")
        return Program(command=(*chroot, *before, "/usr/bin/forewarned"), variables={"PATH": PATH})


@pytest.fixture(scope="module")
def machine(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if os.geteuid() != 0:
        give_up("packages are installed as root, in a chroot")
    root = tmp_path_factory.mktemp("machine")
    subprocess.run(["tar", "-xf", base, "-C", root], check=True)
    root.chmod(0o755)
    # Paths of this machine that are below its root mean the same inside.
    inside = root / str(root).lstrip("/")
    inside.parent.mkdir(parents=True)
    inside.symlink_to("/")
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    try:
        yield Machine(root=root)
    finally:
        subprocess.run(["umount", "--lazy", root / "proc"], check=True)


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("debs")
    return {package.name: build(package, folder) for package in (AGENT, SERVER)}


def next_version_of(deb: Path, into: Path) -> Path:
    """The same package, with a version above its own."""
    tree = into / "tree"
    subprocess.run(["dpkg-deb", "--raw-extract", deb, tree], check=True)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub("(?m)^Version: .*", f"Version: {NEXT}", control.read_text()))
    subprocess.run(["dpkg-deb", "-Znone", "--build", tree, into], check=True, capture_output=True)
    [built] = into.glob("*.deb")
    return built


def files_of_ours(machine: Machine) -> set[str]:
    places = ("etc", "opt", "usr", "var/lib/forewarned", "var/lib/forewarned-agent")
    return {
        str(path.relative_to(machine.root))
        for place in places
        for path in (machine.root / place).rglob("*")
        if "forewarned" in str(path.relative_to(machine.root)) and "var/lib/dpkg" not in str(path)
    }


def test_the_agent_is_installed_used_upgraded_and_purged(
    machine: Machine, debs: dict[str, Path], tmp_path: Path
) -> None:
    deb = debs["forewarned-agent"]
    machine.install(deb)
    config = machine.path("/etc/forewarned/agent.toml")
    folder = machine.path("/tmp/agent")
    folder.mkdir()

    version = machine.run("forewarned", "--version")
    assert version == f"forewarned {deb.name.split('_')[1]}\n"
    assert machine.path("/usr/share/bash-completion/completions/forewarned").is_symlink()
    assert machine.path("/var/lib/forewarned-agent").stat().st_mode & 0o777 == 0o700
    _expect_unit(machine, "forewarned-agent.service", "/opt/forewarned/agent/bin/forewarned")
    with serving(tmp_path) as emulator:
        approve_by_agent(machine.program(folder), emulator, folder)

    config.write_text(config.read_text() + "# an operator's line\n")
    machine.install(next_version_of(deb, tmp_path))
    assert machine.run("dpkg-query", "-Wf", "${Version}", "forewarned-agent") == NEXT
    assert config.read_text().endswith("# an operator's line\n")

    machine.run("dpkg", "--remove", "forewarned-agent")
    assert config.exists()
    assert not machine.path("/usr/bin/forewarned").is_symlink()
    machine.run("dpkg", "--purge", "forewarned-agent")
    assert files_of_ours(machine) == set()


def test_the_server_is_installed_used_upgraded_and_purged(
    machine: Machine, debs: dict[str, Path], tmp_path: Path
) -> None:
    deb = debs["forewarned-server"]
    machine.install(deb)
    config = machine.path("/etc/forewarned/forewarned.toml")
    state = machine.path("/var/lib/forewarned")

    number = int(machine.run("id", "--user", "forewarned"))
    assert (state.stat().st_uid, state.stat().st_mode & 0o777) == (number, 0o700)
    _expect_unit(machine, "forewarned-server.service", "/opt/forewarned/server/bin/forewarned")
    user = ("setpriv", "--reuid=forewarned", "--regid=forewarned", "--clear-groups", "--")
    flags = ("--arm", "off", "--data", "/var/lib/forewarned")
    with machine.program(state, *user).serving(tmp_path, *flags) as up:
        assert read_with_curl(up) == {"DocumentIncarnation": 1, "Events": []}

    config.write_text(config.read_text() + "# an operator's line\n")
    machine.install(next_version_of(deb, tmp_path))
    assert config.read_text().endswith("# an operator's line\n")
    assert (state / "forewarned.db").exists()

    machine.run("dpkg", "--remove", "forewarned-server")
    assert (state / "forewarned.db").exists()
    machine.run("dpkg", "--purge", "forewarned-server")
    assert files_of_ours(machine) == set()


def test_both_are_installed_side_by_side(machine: Machine, debs: dict[str, Path]) -> None:
    for deb in debs.values():
        machine.install(deb)

    chosen = machine.run("readlink", "--canonicalize", "/usr/bin/forewarned")
    machine.run("dpkg", "--purge", "forewarned-server")
    left = machine.run("readlink", "--canonicalize", "/usr/bin/forewarned")
    machine.run("dpkg", "--purge", "forewarned-agent")

    assert chosen == "/opt/forewarned/server/bin/forewarned\n"
    assert left == "/opt/forewarned/agent/bin/forewarned\n"


@pytest.mark.parametrize("package", [AGENT, SERVER], ids=lambda package: package.name)
def test_a_package_is_the_same_each_time(
    package: Package, debs: dict[str, Path], tmp_path: Path
) -> None:
    assert build(package, tmp_path).read_bytes() == debs[package.name].read_bytes()


def test_lintian_objects_to_nothing_but_what_we_have_chosen(debs: dict[str, Path]) -> None:
    lintian = need("lintian")

    said = subprocess.run(
        [lintian, "--allow-root", *debs.values()], capture_output=True, text=True, check=False
    )

    tags = {line.split()[2] for line in said.stdout.splitlines() if line[:2] in {"E:", "W:"}}
    assert tags <= CHOSEN.keys()


def _expect_unit(machine: Machine, unit: str, program: str) -> None:
    text = machine.path(f"/usr/lib/systemd/system/{unit}").read_text()
    assert f"ExecStart={program} " in text
    assert machine.path(program).stat().st_mode & 0o111
    # Known to systemd, and not enabled: nothing is configured yet.
    done = subprocess.run(
        ["chroot", str(machine.root), "systemctl", "is-enabled", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "disabled\n"
