"""The service of the lab's guests, with its actuators, as an operator meets it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.end_to_end.namespaces import serving_in, within
from tests.end_to_end.server_process import Server, environment
from tools.lab.guests import GuestPlan
from tools.lab.lab import Guest, Lab

WEB: Final = GuestPlan(name="web", number=1)
DB: Final = GuestPlan(name="db", number=2)
SETTINGS: Final = """
[actuators.rack]
driver = "libvirt"
hosts = ["hv-a", "hv-b"]
uri = "{uri}"
peer_uri = "{peer}"
migrate_to = "tcp://{{target}}-mig"
freeze = {{ do = "live-migrate" }}
reboot = {{ do = "acpi", else = "reset", patience = "1m" }}

[actuators.misled]
driver = "libvirt"
uri = "{uri}"
targets = ["hv-a", "hv-b"]
peer_uri = "{peer}"
migrate_to = "tcp://10.99.0.99:49152"
freeze = {{ do = "live-migrate" }}

[actuators.reboots]
driver = "remote"

[actuators.moves]
driver = "remote"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    lab: Lab
    server: Server
    folder: Path
    guests: Mapping[str, Guest]
    """By name. All of them read their documents, and approve their events."""
    fleet: Any
    """JSON, as the command that imports it has printed it."""

    def ask(self, method: str, path: str, body: object = None) -> Any:  # JSON
        return within(self.lab.service, lambda: self.server.call(method, path, body))

    def assign(self, **actuators: str) -> None:
        """Apply the fleet as libvirt has it now, with actuators of VMs; others have `rack`."""
        for vm in self.fleet["vms"]:
            name = vm["name"]
            vm |= {"host": self.lab.host_of(name), "actuator": actuators.get(name, "rack")}
        self.ask("PUT", "/v1/fleet", self.fleet)

    def host(self, vm: str) -> str:
        """As the fleet has it."""
        return str(self.ask("GET", f"/v1/vms/{vm}")["host"])

    def schedule(self, type_: str, vm: str) -> str:
        """Its guest approves it, so that it starts soon."""
        answer = self.ask("POST", "/v1/events", {"type": type_, "resources": [vm]})
        return str(answer["events"][0]["event_id"])

    def status(self, event_id: str) -> str:
        return str(self.ask("GET", f"/v1/events/{event_id}")["status"])

    def wait_until_started(self, event_id: str) -> None:
        self._wait(event_id, "started")

    def wait_until_over(self, event_id: str) -> None:
        self._wait(event_id, "completed")
        assert self.status(event_id) == "Completed", self.history(event_id)

    def _wait(self, event_id: str, milestone: str) -> None:
        """Guests may have to boot, without KVM, on a busy machine."""
        for _ in range(6):
            path = f"/v1/events/{event_id}?wait={milestone}&timeout=30s"
            if self.ask("GET", path)["started_at" if milestone == "started" else "ended_at"]:
                return
        raise AssertionError(f"not {milestone}: {self.history(event_id)}")

    def task(self, event_id: str) -> str:
        """The state of the task of an event that has one VM."""
        [task] = self.ask("GET", f"/v1/tasks?event={event_id}")["tasks"]
        return str(task["state"])

    def actions(self, event_id: str) -> list[str]:
        """What history says of the event, from the first on."""
        rows = self.ask("GET", f"/v1/history?event={event_id}")["history"]
        return [row["action"] for row in reversed(rows)]

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


@contextlib.contextmanager
def service_with_guests(lab: Lab, folder: Path) -> Iterator[Service]:
    """Both guests are on hv-a, and have read their documents."""
    settings = folder / "forewarned.toml"
    settings.write_text(SETTINGS.format(uri=lab.uri, peer=lab.peer_uri))
    # Actuators are processes of their own.
    flags = ("--mode=service", f"--config={settings}", "--control-access=open", "--workers=1")
    with contextlib.ExitStack() as stack:
        # They boot while the server starts.
        guests = [stack.enter_context(lab.guest(plan, host="hv-a")) for plan in (WEB, DB)]
        server = stack.enter_context(serving_in(lab.service, folder, *flags, "--log-format=json"))
        made = Service(
            lab=lab,
            server=server,
            folder=folder,
            guests={guest.plan.name: guest for guest in guests},
            fleet=_imported_fleet(lab),
        )
        made.assign()
        for guest in guests:
            guest.serial.wait_for("poll 3")
        yield made


def _imported_fleet(lab: Lab) -> Any:  # JSON
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
