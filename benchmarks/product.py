"""The server that is measured: a real process, with all its guards on."""

import contextlib
import ipaddress
import itertools
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from benchmarks import exchange, usage
from benchmarks.exchange import BrokenExchangeError
from benchmarks.started import StartError, end_of_log, started, stdout_of

PROBE: Final = "probe"
"""the VM that calls from 127.0.0.1"""

# The limit on a VM's rate is looked at on every poll, and never reached.
GUARDED: Final = ("--rate-limit", "on", "--rate", "1000000", "--max-connections", "40000")

_RANGE: Final = ipaddress.IPv4Network("127.16.0.0/12")
_READY: Final = re.compile(r"^\s*(metadata|control)\s+http://127\.0\.0\.1:(\d+)$")


@dataclass(frozen=True, slots=True)
class Product:
    pids: list[int]
    metadata: int
    """port"""
    control: int
    """port"""
    ready_after: float
    """seconds from its start until it answered a poll"""

    def call(self, method: str, path: str, body: object = None) -> Any:  # JSON is whatever it is
        connection = HTTPConnection(exchange.LOOPBACK, self.control, timeout=600)
        with contextlib.closing(connection):
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        if response.status >= 400:
            raise BrokenExchangeError(f"{method} {path}: {response.status} {answer[:300]!r}")
        return json.loads(answer)

    def schedule(self, vms: Sequence[str], *, type: str = "Reboot", notice: str = "7d") -> Any:
        """Events far enough away that none falls due during a measurement."""
        wanted = {"type": type, "resources": list(vms), "notice": notice}
        return self.call("POST", "/v1/events", wanted)["events"]


def fleet_of(vms: int, *, kind: str) -> str:
    """A fleet file: the probe, and so many VMs of one kind, which get addresses in their order."""
    probe = f'[[vms]]\nname = "{PROBE}"\naddress = "{exchange.LOOPBACK}"\n'
    match kind:
        case "alone":  # a scope each
            return probe + "".join(f'[[vms]]\nname = "many-{n}"\n' for n in range(vms))
        case "grouped":  # a scope for each hundred
            return probe + (f'[[scale_sets]]\nname = "many"\ncapacity = {vms}\n' if vms else "")
        case "together":  # one scope
            role = f'{{ name = "many", instances = {vms} }}'
            return f'{probe}[[cloud_services]]\nname = "many"\nroles = [{role}]\n'
        case _:
            raise ValueError(kind)


def address_of(number: int) -> str:
    return str(_RANGE[number + 1])


def addresses(count: int, *, apart: int = 1) -> list[str]:
    return [address_of(number * apart) for number in range(count)]


@contextlib.contextmanager
def serving(
    folder: Path,
    fleet: str,
    *flags: str,
    prefix: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Product]:
    """Serve from FOLDER, which may hold what an earlier run left there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fleet.toml").write_text(fleet)
    listeners = ("--metadata", "--control", "--arm")
    command = [
        *prefix,
        *(sys.executable, "-m", "forewarned", "serve", "--data", "state", "--fleet", "fleet.toml"),
        *itertools.chain.from_iterable((flag, "127.0.0.1:0") for flag in listeners),
        *("--address-range", str(_RANGE), "--log-level", "warning"),
        *GUARDED,
        *flags,
    ]
    at = time.monotonic()
    with started(command, folder, environment=environment) as running:
        ports = {}
        for line in stdout_of(running):
            if found := _READY.match(line.decode()):
                ports[found[1]] = int(found[2])
            if len(ports) == 2:
                break
        else:
            raise StartError(f"the server did not start: {end_of_log(folder)}")
        # The first read of a scope's document activates the scope, which is a commit.
        exchange.ask(ports["metadata"], exchange.poll())
        ready_after = time.monotonic() - at
        yield Product(usage.family(running.pid), ports["metadata"], ports["control"], ready_after)


def incarnation(body: bytes) -> int:
    found: int = json.loads(body)["DocumentIncarnation"]
    return found


def offers_long_poll(product: Product) -> bool:
    """A server that doesn't know the parameters answers at once."""
    now = incarnation(exchange.ask(product.metadata, exchange.poll()).body)
    with exchange.connect(product.metadata, timeout=1) as connection:
        connection.sendall(exchange.long_poll(now))
        try:
            answer = exchange.read(connection)
        except TimeoutError:
            return True
    if answer.status != 200:
        raise BrokenExchangeError(f"a long poll was answered with {answer.status}")
    return False
