"""The image, built on a base that is made here, and run: one container reaches another."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # it comes with mkdocs, without types

from tests.artefacts.containers import Podman
from tests.artefacts.programs import bare_environment
from tests.end_to_end.agents import until
from tests.packages import give_up, need
from tools.release.python_distributions import ROOT
from tools.release.wheels import Target, download

IMAGE: Final = "forewarned:test"
READ: Final = """
from forewarned.client import ScheduledEvents
with ScheduledEvents(endpoint="http://emulator:8169/vm/{vm}") as scheduled:
    document = scheduled.document()
    print(document.incarnation, *(event.type for event in document.events))
"""
STARTUP: Final = """\
[[vms]]
name = "checkout"
address = "10.0.0.4"
"""


@pytest.fixture(scope="module")
def podman(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """Has the image."""
    if os.geteuid() != 0:
        give_up("containers are run as root")
    # Not below pytest's own folder, which others may not enter.
    podman = Podman.needed(Path(tempfile.mkdtemp(prefix="forewarned-podman-")))
    wheels = tmp_path_factory.mktemp("wheels") / "here"
    python = _python_of(base)
    download(
        (ROOT / "constraints" / "server.txt").read_text(),
        wheels,
        Target(python=python, processor=os.uname().machine, libc="glibc"),
    )
    try:
        podman("import", "--quiet", str(base), "forewarned-base:test")
        podman(
            *("build", "--isolation=chroot", "--format=docker", f"--volume={wheels}:/wheels:ro"),
            *("--build-arg=BASE=localhost/forewarned-base:test", f"--tag={IMAGE}"),
            *("--build-arg=PIP_NO_INDEX=1", "--build-arg=PIP_FIND_LINKS=/wheels"),
            *(*podman.limits, f"--file={ROOT}/Containerfile", str(ROOT)),
        )
        podman("network", "create", "forewarned-test")
        yield podman
    finally:
        podman.close()


@pytest.fixture(scope="module")
def promises(podman: Podman) -> Any:  # JSON, which tests look into
    return json.loads(podman("image", "inspect", IMAGE).stdout)[0]


def test_the_image_says_what_the_page_promises(promises: Any) -> None:
    config = promises["Config"]
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")

    assert config["User"] == "10001:10001"
    assert set(config["ExposedPorts"]) == {"8169/tcp", "8170/tcp", "8171/tcp"}
    assert list(config["Volumes"]) == ["/var/lib/forewarned"]
    assert config["StopSignal"] == "SIGTERM"
    assert promises["Healthcheck"]["Test"][0] == "CMD"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    for promise in (
        "10001",
        "8169",
        "8170",
        "8171",
        "/var/lib/forewarned",
        "/etc/forewarned/startup",
    ):
        assert f"`{promise}`" in page


def test_an_emulator_in_a_container_is_reached_by_another(podman: Podman) -> None:
    podman.run(*_EMULATOR, "--name=emulator", IMAGE)
    try:
        until(lambda: _is_healthy(podman), "the health check to pass")
        first = _read(podman, "web")
        podman("exec", "emulator", "forewarned", "schedule", "reboot", "--vm", "web")
        second = _read(podman, "web")

        podman("stop", "--time=20", "emulator")
        stopped = podman("inspect", "emulator", "--format={{.State.ExitCode}}").stdout
        podman("start", "emulator")
        until(lambda: _is_healthy(podman), "the health check to pass again")
        third = _read(podman, "web")
    finally:
        podman("rm", "--force", "--time=1", "--volumes", "emulator")

    assert first == "1"
    assert second == "2 Reboot"
    assert stopped.strip() == "0"
    assert third.split()[1:] == ["Reboot"]  # the volume has kept it


def test_files_of_a_mounted_folder_are_there_when_it_is_up(podman: Podman, tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text(STARTUP)
    tmp_path.chmod(0o755)
    mount = f"--volume={tmp_path}:/etc/forewarned/startup:ro"
    podman.run(*_EMULATOR, mount, "--name=emulator", IMAGE)
    try:
        until(lambda: _is_healthy(podman), "the health check to pass")
        assert _read(podman, "checkout") == "1"
    finally:
        podman("rm", "--force", "--time=1", "--volumes", "emulator")


def test_a_mounted_folder_that_its_user_may_not_read_is_not_taken_for_empty(
    podman: Podman, tmp_path: Path
) -> None:
    (tmp_path / "fleet.toml").write_text(STARTUP)
    tmp_path.chmod(0o700)
    mount = f"--volume={tmp_path}:/etc/forewarned/startup:ro"

    done = podman("run", "--rm", *podman.limits, "--network=none", mount, IMAGE, check=False)

    assert done.returncode == 1
    assert "/etc/forewarned/startup: Permission denied" in done.stderr


def test_it_writes_to_its_volume_alone(podman: Podman) -> None:
    flags = ("--read-only", "--read-only-tmpfs=false", "--cap-drop=all")
    podman.run(*_EMULATOR, *flags, "--name=emulator", IMAGE)
    try:
        until(lambda: _is_healthy(podman), "the health check to pass")
    finally:
        podman("rm", "--force", "--time=1", "--volumes", "emulator")


def test_the_health_check_fails_where_no_server_is(podman: Podman) -> None:
    health = "--entrypoint=/opt/forewarned/bin/forewarned-health"

    done = podman("run", "--rm", *podman.limits, "--network=none", health, IMAGE, check=False)

    assert done.returncode == 1
    assert "no answer at port 8170" in done.stderr


def test_the_application_of_the_compose_file_drains_and_approves(podman: Podman) -> None:
    """As compose would run both, with their variables, words and files."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    try:
        for name in ("emulator", "application"):
            podman.run(*_as_composed(name, services[name]))
            if name == "emulator":
                until(lambda: _is_healthy(podman), "the health check to pass")
                _read(podman, "web")
        podman("exec", "emulator", "forewarned", "schedule", "reboot", "--vm", "web")
        until(
            lambda: "draining before Reboot" in podman("logs", "application").stdout,
            "the application to drain",
        )
    finally:
        podman("rm", "--force", "--time=1", "--volumes", "--all")


@pytest.mark.parametrize("file", ["compose.yaml", "examples/several-nodes/compose.yaml"])
def test_podman_compose_understands_a_file(file: str) -> None:
    compose = need("podman-compose")

    done = subprocess.run(
        [compose, "--dry-run", "--file", str(ROOT / file), "up", "--no-start"],
        env={**bare_environment(), "FOREWARNED_DB_PASSWORD": "for a dry run"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "podman create --name=" in done.stdout


_EMULATOR: Final = ("--detach", "--network=forewarned-test", "--env=FOREWARNED_HOSTS=emulator")


def _as_composed(name: str, service: Any) -> list[str]:
    """The words of `podman run`. State and published ports are left out."""
    words = ["--detach", f"--name={name}", "--network=forewarned-test"]
    words += [f"--env={key}={value}" for key, value in service.get("environment", {}).items()]
    words += [
        f"--volume={(ROOT / host).resolve()}:{inside}"
        for host, _, inside in (each.partition(":") for each in service.get("volumes", []))
        if host.startswith(".")
    ]
    first, *rest = service.get("entrypoint", [""])
    return [*words, *([f"--entrypoint={first}"] if first else []), IMAGE, *rest]


def _is_healthy(podman: Podman) -> bool:
    return podman("healthcheck", "run", "emulator", check=False).returncode == 0


def _read(podman: Podman, vm: str) -> str:
    """What a second container reads."""
    python = "--entrypoint=/opt/forewarned/bin/python"
    network = "--network=forewarned-test"
    return podman.run("--rm", network, python, IMAGE, "-c", READ.format(vm=vm)).strip()


def _python_of(base: Path) -> str:
    """Of the base, which may have another one than this machine."""
    import tarfile

    with tarfile.open(base) as archive:
        link = archive.getmember("./usr/bin/python3").linkname
    return link.removeprefix("python")
