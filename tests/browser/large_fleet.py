"""5,000 VMs with 100 open events, as a fleet of that size looks on a busy day."""

from typing import Any, Final

from tests.end_to_end.server_process import Server

VMS: Final = 5_000
EVENTS: Final = 100
NEXT: Final = "web-7"
"""The VM whose event is the next to start."""

_BIG_SETS: Final = 10
_SETS: Final = 30
_SINGLES: Final = 500


def fill(server: Server) -> str:
    """The id of the event that is the next to start. It is among the first to be published."""
    server.call("PUT", "/v1/fleet", _fleet())
    found = _schedule(server, "Reboot", [NEXT], notice="15m")
    server.call("POST", "/v1/clock/step", {"by": "11m"})
    big = [f"shop-{number}_{vm}" for number in range(_BIG_SETS) for vm in (0, 100, 200)]
    _schedule(server, "Freeze", big, notice="40m", duration="9s")
    _schedule(server, "Redeploy", [f"set-{n}_1" for n in range(_SETS)], notice="20m")
    _schedule(server, "Reboot", [f"web-{n}" for n in range(10, 30)], notice="2h", duration="6m")
    going = _schedule(server, "Reboot", [f"web-{n}" for n in range(30, 42)], duration="30m")
    for event_id in going:
        server.call("POST", f"/v1/events/{event_id}/approve")
    _schedule(server, "Terminate", [f"set-{n}_0" for n in range(7)])
    return found[0]


def _schedule(server: Server, type_: str, names: list[str], **more: str) -> list[str]:
    for name in names:
        server.get(f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01")
    asked = {"type": type_, "resources": names, **more}
    made = server.call("POST", "/v1/events", asked)["events"]
    return [event["event_id"] for event in made]


def _fleet() -> dict[str, Any]:
    return {
        "vms": [{"name": f"web-{n}", "host": f"host-{n % 120}"} for n in range(_SINGLES)],
        "scale_sets": [
            *({"name": f"shop-{n}", "capacity": 300} for n in range(_BIG_SETS)),
            *({"name": f"set-{n}", "capacity": 50} for n in range(_SETS)),
        ],
    }
