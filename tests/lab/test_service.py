"""Events from the schedule to the guest and back: the service, its actuator, libvirt, real guests."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.end_to_end.namespaces import serving_in, within
from tests.end_to_end.server_process import Server, environment
from tests.end_to_end.supervised_server import wait_until
from tools.lab.guests import GuestPlan
from tools.lab.lab import Guest, Lab

T = TypeVar("T")
WEB = GuestPlan(name="web", number=1)
SETTINGS = """
[actuators.rack]
driver = "libvirt"
hosts = ["hv-a", "hv-b"]
uri = "{uri}"
peer_uri = "{peer}"
migrate_to = "tcp://{{target}}-mig"
freeze = {{ do = "live-migrate" }}
reboot = {{ do = "reset" }}

[actuators.misled]
driver = "libvirt"
uri = "{uri}"
targets = ["hv-a", "hv-b"]
peer_uri = "{peer}"
migrate_to = "tcp://10.99.0.99:49152"
freeze = {{ do = "live-migrate" }}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    lab: Lab
    server: Server
    folder: Path
    guest: Guest

    def ask(self, method: str, path: str, body: object = None) -> Any:  # JSON
        return self._there(lambda: self.server.call(method, path, body))

    def _there(self, call: Callable[[], T]) -> T:
        return within(self.lab.service, call)

    def assign(self, actuator: str) -> str:
        """Apply the fleet as libvirt has it now. Returns the VM's host."""
        fleet = imported_fleet(self.lab)
        fleet["vms"][0]["actuator"] = actuator
        self.ask("PUT", "/v1/fleet", fleet)
        return self.host

    @property
    def host(self) -> str:
        """Of the VM, as the fleet has it."""
        return str(self.ask("GET", "/v1/vms/web")["host"])

    def schedule(self, type_: str) -> str:
        """Its guest approves it, so that it starts soon."""
        answer = self.ask("POST", "/v1/events", {"type": type_, "resources": ["web"]})
        return str(answer["events"][0]["event_id"])

    def wait_until_over(self, event_id: str) -> None:
        # The guest may have to boot, without KVM.
        wait_until(lambda: bool(self._event(event_id)["status"] == "Completed"), patience=180)

    def _event(self, event_id: str) -> Any:  # JSON
        return self.ask("GET", f"/v1/events/{event_id}")

    def history(self, event_id: str) -> str:
        return json.dumps(self.ask("GET", f"/v1/history?event={event_id}"))

    def actuators(self) -> list[int]:
        """The process ids of the actuators' process, one for each of its lives."""
        lines = (self.folder / "log").read_text().splitlines()
        told = [json.loads(line) for line in lines if line.startswith("{")]
        return [
            line["pid"]
            for line in told
            if line["message"] == "a process is ready" and line["worker"] == "actuators"
        ]


def imported_fleet(lab: Lab) -> Any:  # JSON
    uris = [lab.uri.replace("{host}", name) for name in lab.hosts]
    done = subprocess.run(
        [sys.executable, "-m", "forewarned", "fleet", "import", "libvirt", *uris, "--json"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def service(the_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("service")
    settings = folder / "forewarned.toml"
    settings.write_text(SETTINGS.format(uri=the_lab.uri, peer=the_lab.peer_uri))
    flags = ("--mode=service", f"--config={settings}", "--control-access=open")
    with (
        serving_in(the_lab.service, folder, *flags, "--log-format=json") as server,
        the_lab.guest(WEB, host="hv-a") as guest,
    ):
        made = Service(lab=the_lab, server=server, folder=folder, guest=guest)
        assert made.assign("rack") == "hv-a"
        guest.serial.wait_for("poll 3")
        yield made


def test_a_reboot_boots_the_guest_exactly_once(service: Service) -> None:
    """I22. The guest reads of it, approves it, is reset, boots, reads again, and it is over."""
    service.assign("rack")
    serial = service.guest.serial
    before, heard = serial.boots(), len(serial.lines)

    reboot = service.schedule("Reboot")
    service.wait_until_over(reboot)
    serial.wait_for("poll 3$", since=heard)

    assert len(serial.boots()) == len(before) + 1
    assert f"approves {reboot}" in [line.text for line in serial.lines[heard:]]


def test_a_freeze_moves_the_guest_while_it_goes_on_polling(service: Service) -> None:
    source = service.assign("rack")
    serial = service.guest.serial
    serial.wait_for("poll", since=len(serial.lines))
    boots, heard, usual = serial.boots(), len(serial.lines), serial.longest_gap(since=-5)

    freeze = service.schedule("Freeze")
    service.wait_until_over(freeze)
    serial.wait_for(r'document .*"Events":\[\]', since=heard)

    assert {source, service.host} == {"hv-a", "hv-b"}
    assert serial.boots() == boots
    # A machine that is busy with other things lets its guests poll less often at any time.
    assert serial.longest_gap(since=heard) < 3 + usual


def test_a_migration_outlives_the_actuator_that_began_it(service: Service) -> None:
    """I22: its successor looks, sees what became of it, and does nothing again."""
    source = service.assign("rack")
    serial = service.guest.serial
    boots, heard, lives = serial.boots(), len(serial.lines), service.actuators()

    freeze = service.schedule("Freeze")
    serial.wait_for('document .*"EventStatus":"Started"', since=heard)
    os.kill(lives[-1], signal.SIGKILL)
    service.wait_until_over(freeze)

    assert len(service.actuators()) == len(lives) + 1
    assert {source, service.host} == {"hv-a", "hv-b"}
    assert serial.boots() == boots


def test_a_migration_that_fails_ends_the_event_with_its_cause(service: Service) -> None:
    source = service.assign("misled")
    serial = service.guest.serial
    boots, heard = serial.boots(), len(serial.lines)

    freeze = service.schedule("Freeze")
    service.wait_until_over(freeze)
    serial.wait_for("poll", since=heard)

    assert service.host == source
    assert serial.boots() == boots
    assert "not carried out: libvirt of " in service.history(freeze)
