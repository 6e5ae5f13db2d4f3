"""What a page costs the server, with no browser that looks at it."""

import contextlib
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Final

from benchmarks.bench import Bench
from benchmarks.console import busy_fleet
from benchmarks.console.busy_fleet import BusyFleet
from benchmarks.console.processor import Meter
from benchmarks.exchange import LOOPBACK, BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured
from benchmarks.product import Product

LIVE_PAGES: Final = ("/", "/events", "/fleet", "/sets")
"""Those that many things are on, and that are fetched again after every change."""
A_CHANGE: Final = at_most(100)
"""ms of the server's processor"""
_LOOKS: Final = 5
_ZOOMS: Final = ("15m", "1h", "6h", "1d", "7d", "30d")


def paths(fleet: BusyFleet) -> tuple[str, ...]:
    """Every kind of page."""
    scope = fleet.scopes[0]
    return (
        "/",
        *(f"/?zoom={zoom}" for zoom in _ZOOMS),
        f"/?scope={scope.id}",
        "/events",
        "/events?status=soon",
        "/unread",
        "/fleet",
        "/fleet?page=4",
        "/fleet?find=shop-14",
        "/hosts",
        "/hosts?affected=on",
        "/hosts/host-01",
        f"/scopes/{scope.id}",
        f"/vms/{scope.vms[0]}",
        f"/events/{fleet.an_event}",
        "/tasks",
        "/actions",
        "/actions/schedule",
        "/actions/maintain-set",
        "/actions/maintain-host",
        "/actions/scale",
        "/sets",
        "/sets/new",
        "/history",
        "/subscriptions",
        "/nodes",
    )


def render(server: Product, path: str) -> float:
    """Milliseconds of the server's processor for one page, without a browser."""
    connection = HTTPConnection(LOOPBACK, server.control, timeout=60)
    with contextlib.closing(connection):
        meter = Meter(server.pids)
        connection.request("GET", path)
        answer = connection.getresponse()
        page = answer.read()
        spent = meter.milliseconds()
    if answer.status != 200 or not page.rstrip().endswith(b"</html>"):
        raise BrokenExchangeError(f"{path}: {answer.status}, and no whole page")
    return spent


def measure(bench: Bench) -> Iterator[Line]:
    """The pages that are live, each as a window fetches it after a change."""
    with bench.serving("console", busy_fleet.fleet_file(), "--clock", "paused") as server:
        busy_fleet.fill(server)
        for path in LIVE_PAGES:
            # The first look draws what later ones keep.
            spent = [render(server, path) for _ in range(_LOOKS)][1:]
            yield measured(
                "console", f"processor for {path}", Spread.of(spent), unit="ms", goal=A_CHANGE
            )
