"""The fleet that the console is measured with: 200 scopes with 500 open events, among others.

10,000 VMs, or several times as many: then nothing happens in the scopes between the busy ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks import exchange, volley
from benchmarks.product import Product

VMS_PER_SCOPE: Final = 50
_SETS: Final = 150
_SPOT: Final = 20
_AVAILABILITY_SETS: Final = 30
SCOPES: Final = _SETS + _SPOT + _AVAILABILITY_SETS
OPEN_EVENTS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    id: str
    vms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyFleet:
    scopes: tuple[Scope, ...]
    """Those in which something happens."""
    an_event: str
    """The id of one that waits."""


def fleet_file(times: int = 1) -> str:
    sets = "".join(_scale_set(f"shop-{n:04}", "") for n in range(_SETS * times))
    spot = "".join(_scale_set(f"spot-{n:04}", 'priority = "Spot"\n') for n in range(_SPOT * times))
    return sets + spot + "".join(map(_availability_set, range(_AVAILABILITY_SETS * times)))


def scopes(times: int = 1) -> tuple[Scope, ...]:
    """Those of the file in which something happens, in the order in which the server lists them."""
    sets = [f"shop-{n:04}" for n in range(0, _SETS * times, times)]
    spot = [f"spot-{n:04}" for n in range(0, _SPOT * times, times)]
    return (
        *(
            Scope(id=f"avset/db-{n:04}", vms=_names(f"db-{n:04}", "-"))
            for n in range(0, _AVAILABILITY_SETS * times, times)
        ),
        *(Scope(id=f"vmss/{name}/0", vms=_names(name, "_")) for name in (*sets, *spot)),
    )


def fill(server: Product, times: int = 1) -> BusyFleet:
    """Events of every type and status. As many are open as there should be; more are over."""
    all_scopes = scopes(times)
    shop, spot = all_scopes[_AVAILABILITY_SETS:-_SPOT], all_scopes[-_SPOT:]
    # A scope that no VM has read gets no notice, and so no timeline to speak of.
    volley.fire(server.metadata, [exchange.poll_as(scope.vms[0]) for scope in all_scopes])
    waiting = _schedule(server, "Reboot", all_scopes[:60], 0, notice="20m")
    _schedule(server, "Reboot", all_scopes[60:130], 0, notice="45m")
    _schedule(server, "Reboot", all_scopes[130:], 0, notice="1d")
    _schedule(server, "Freeze", all_scopes[:100], 1, notice="30m", duration="9s")
    _schedule(server, "Redeploy", all_scopes[100:], 1, notice="2h")
    _schedule(server, "Terminate", shop[:40], 2)
    started = _schedule(server, "Freeze", shop[40:80], 2, notice="40m", duration="2h")
    _schedule(server, "Preempt", spot, 2)
    called_off = _schedule(server, "Reboot", shop[80:100], 2)
    for event_id in started:
        server.call("POST", f"/v1/events/{event_id}/approve")
    for event_id in called_off:
        server.call("POST", f"/v1/events/{event_id}/cancel", {"reason": "after the release"})
    found = server.call("GET", "/v1/events?limit=1000")["events"]
    if len(found) != OPEN_EVENTS:
        raise exchange.BrokenExchangeError(f"{len(found)} events are open, not {OPEN_EVENTS}")
    return BusyFleet(scopes=all_scopes, an_event=waiting[0])


def _schedule(
    server: Product, type_: str, where: Sequence[Scope], vm: int, **more: str
) -> list[str]:
    """One event for each scope, all by one request."""
    wanted = {"type": type_, "resources": [scope.vms[vm] for scope in where], **more}
    return [event["event_id"] for event in server.call("POST", "/v1/events", wanted)["events"]]


def _scale_set(name: str, more: str) -> str:
    return f'[[scale_sets]]\nname = "{name}"\ncapacity = {VMS_PER_SCOPE}\n{more}'


def _availability_set(number: int) -> str:
    names = ", ".join(f'"db-{number:04}-{vm}"' for vm in range(VMS_PER_SCOPE))
    return f'[[availability_sets]]\nname = "db-{number:04}"\nvms = [{names}]\n'


def _names(name: str, joint: str) -> tuple[str, ...]:
    return tuple(f"{name}{joint}{vm}" for vm in range(VMS_PER_SCOPE))
