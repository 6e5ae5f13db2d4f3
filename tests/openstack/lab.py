"""A Nova to talk to, and what tests ask of it beside the driver."""

import fcntl
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx2

from forewarned.actuators.driver import Action, Driver, Vm
from forewarned.actuators.openstack.session import MICROVERSION, Cloud
from forewarned.actuators.openstack.vocabulary import EFFECTS, Word
from forewarned.core.model import EventType
from tests.end_to_end.supervised_server import wait_until
from tests.packages import give_up

ROOT: Final = Path(__file__).parents[2]
VENV: Final = ROOT / ".venv-nova"
PROCESS: Final = Path(__file__).parent / "nova_process.py"
SECRET: Final = "open-sesame"
IMAGE: Final = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
"""One that Nova's stand-in for Glance has."""
BETWEEN_LOOKS: Final = timedelta(milliseconds=200)
"""Each takes Nova 30 ms, which it could use for what is waited for."""


KEY: Final = "E1/web-0"
COUNTED: Final = {
    Word.LIVE_MIGRATE: "live-migration",
    Word.COLD_MOVE: "migrate",
    Word.HARD_REBOOT: "reboot",
    Word.SOFT_REBOOT: "reboot",
    Word.STOP: "stop",
    Word.DELETE: "delete",
}
"""What Nova calls each of them in its records."""


def an_action(
    do: str, *, otherwise: str | None = None, patience: timedelta | None = None
) -> Action:
    return Action(
        type=EventType.REBOOT,
        do=do,
        effect=EFFECTS[do],
        otherwise=otherwise,
        otherwise_effect=None if otherwise is None else EFFECTS[otherwise],
        patience=patience,
    )


def until(holds: Callable[[], bool]) -> None:
    """Patient: on a busy machine Nova takes ten times as long."""
    wait_until(holds, patience=180, pause=BETWEEN_LOOKS)


async def carry_out(driver: Driver, do: str, vm: Vm) -> None:
    await driver.mark(vm, KEY)
    await driver.act(an_action(do), vm, KEY, lambda _: None)


@contextmanager
def nova_process() -> Iterator[str]:
    """The URL of a Nova with two hosts, hv-a and hv-b."""
    need_nova()
    with subprocess.Popen(
        [VENV / "bin" / "python", PROCESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = next((line for line in process.stdout if line.startswith("http")), "").strip()
            assert url, process.stderr.read()[-2000:]
            yield url
        finally:
            process.kill()


def need_nova() -> None:
    """Install Nova into .venv-nova, once. The test is skipped where that can't be done."""
    with (Path(tempfile.gettempdir()) / "forewarned-tests-nova.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_installed():
            return
        done = subprocess.run(
            [sys.executable, ROOT / "tools" / "environment.py", "nova"],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        give_up(f"Nova can't be installed into .venv-nova: {done.stderr[-500:]}")


def _is_installed() -> bool:
    """Whether it is complete, as pinned, and was not copied here."""
    whole, stamp = VENV / ".whole", VENV / ".nova"
    if not whole.is_file() or whole.read_text().strip() != str(ROOT) or not stamp.is_file():
        return False
    pins = ROOT / "constraints" / "nova.txt"
    return stamp.stat().st_mtime >= pins.stat().st_mtime


def _client() -> httpx2.Client:
    headers = {
        "X-Auth-Token": "of the tests",
        "OpenStack-API-Version": f"compute {MICROVERSION}",
    }
    # Certificates, which nothing here has, would take longer to load than a request.
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.Client(trust_env=False, headers=headers, timeout=60, verify=verify)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nova:
    """Nova's API as an administrator uses it."""

    url: str
    cloud: Cloud
    client: httpx2.Client = field(default_factory=_client)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Any: what JSON is made of."""
        response = self.client.request(method, f"{self.url}/compute/v2.1{path}", json=body)
        response.raise_for_status()
        return response.json() if response.content else None

    def create(self, name: str = "web-0", *, host: str = "hv-a", **metadata: str) -> Vm:
        server = {
            "name": name,
            "imageRef": IMAGE,
            "flavorRef": "1",
            "networks": "none",
            "host": host,
            "metadata": metadata,
        }
        return self.created(server)

    def created(self, server: Mapping[str, object], **beside: object) -> Vm:
        """A VM that is there, running."""
        id_ = self.ask("POST", "/servers", {"server": server, **beside})["server"]["id"]
        until(lambda: self.server(id_)["status"] != "BUILD")
        seen = self.server(id_)
        assert seen["status"] == "ACTIVE", seen
        return _vm(seen)

    def vm(self, id_: str) -> Vm:
        """As a fleet that is in step with Nova has it."""
        return _vm(self.server(id_))

    def server(self, id_: str) -> Any:
        return self.ask("GET", f"/servers/{id_}")["server"]

    def actions(self, vm: Vm) -> list[str]:
        """What Nova has done to a VM, the oldest first."""
        found = self.ask("GET", f"/servers/{vm.vm_id}/os-instance-actions")["instanceActions"]
        return [each["action"] for each in reversed(found)]

    def migrations(self, vm: Vm) -> list[tuple[str, str]]:
        """Type and status, the oldest first."""
        found = self.ask("GET", f"/os-migrations?instance_uuid={vm.vm_id}")["migrations"]
        ordered = sorted(found, key=lambda each: int(each["id"]))
        return [(each["migration_type"], each["status"]) for each in ordered]

    def service(self, host: str) -> Any:
        """The compute service of a host."""
        path = f"/os-services?binary=nova-compute&host={host}"
        (service,) = self.ask("GET", path)["services"]
        return service

    def lab(self, change: str) -> None:
        """`break` it, `mend` it, or let all tokens `expire`."""
        self.client.post(f"{self.url}/lab/{change}").raise_for_status()


def _vm(server: Any) -> Vm:
    """Any: what JSON is made of."""
    return Vm(name=server["name"], vm_id=server["id"], host=server["OS-EXT-SRV-ATTR:host"])
