"""P11, P12: the console of a large fleet: the dearest page, and a change that ten windows show."""

import contextlib
from collections.abc import Collection, Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Final, Self

from benchmarks import usage
from benchmarks.bench import Bench, many
from benchmarks.console import busy_fleet
from benchmarks.console.busy_fleet import BusyFleet, Scope
from benchmarks.console.processor import Meter
from benchmarks.console.rendering import paths, render
from benchmarks.exchange import LOOPBACK, BrokenExchangeError
from benchmarks.figures import Line, Spread, at_most, measured
from benchmarks.product import Product

_TIMES: Final = 10
_WINDOWS: Final = 10
_SETTLE: Final = 0.005
"""Seconds between what a window hears and what it asks for, as in `console.js`."""
_AFTERWARDS: Final = 0.5
_NAMED: Final = 4


def measure(bench: Bench, wanted: Collection[str]) -> Iterator[Line]:
    times = bench.scaled(_TIMES)
    vms = many(busy_fleet.SCOPES * busy_fleet.VMS_PER_SCOPE * times, "VMs")
    bench.say(f"P11, P12: the console of {vms}")
    with bench.serving("console", busy_fleet.fleet_file(times), "--clock", "paused") as server:
        fleet = busy_fleet.fill(server, times)
        usage.wait_until_quiet(server.pids)
        if "P11" in wanted:
            yield _dearest_page(bench, server, fleet, vms)
        if "P12" in wanted:
            yield _live_change(bench, server, fleet, vms)


def _dearest_page(bench: Bench, server: Product, fleet: BusyFleet, vms: str) -> Line:
    spent: dict[str, Spread] = {}
    for path in paths(fleet):
        looks = [render(server, path) for _ in range(bench.rounds + 1)]
        name = path.replace(fleet.an_event, "…")
        # The first look compiles templates, and draws what later ones keep.
        spent[name] = Spread.of(looks[1:])
    dearest = sorted(spent, key=lambda path: spent[path].median, reverse=True)
    named = ", ".join(f"{path} {spent[path].median:.0f} ms" for path in dearest[:_NAMED])
    return measured(
        "P11",
        f"processor time of the console's most expensive page, {vms}",
        spent[dearest[0]],
        unit="ms",
        goal=at_most(300),
        note=f"of {len(spent)} pages: {named}",
    )


def _live_change(bench: Bench, server: Product, fleet: BusyFleet, vms: str) -> Line:
    with contextlib.ExitStack() as stack:
        windows = [stack.enter_context(_Window(server)) for _ in range(_WINDOWS)]
        costs = [
            _cost(server, windows, scope)
            for scope, _ in zip(fleet.scopes, range(bench.rounds + 1), strict=False)
        ]
    return measured(
        "P12",
        f"processor time of a change that {_WINDOWS} open windows show, {vms}",
        Spread.of(costs[1:]),
        unit="ms",
        goal=at_most(20),
        note="an event is scheduled; all windows show the overview, and fetch it again",
    )


def _cost(server: Product, windows: list["_Window"], scope: Scope) -> float:
    for window in windows:
        window.connect()
    usage.wait(_AFTERWARDS)
    meter = Meter(server.pids)
    [event] = server.schedule([scope.vms[10]], type="Freeze", notice="50m")
    for window in windows:
        window.hear(event["event_id"])
    usage.wait(_SETTLE)
    for window in windows:
        window.ask()
    for window in windows:
        window.see(event["event_id"])
    usage.wait(_AFTERWARDS)
    return meter.milliseconds()


class _Window:
    """What an open page of the console does, without a browser around it."""

    def __init__(self, server: Product) -> None:
        self._page = HTTPConnection(LOOPBACK, server.control, timeout=60)
        self._changes = HTTPConnection(LOOPBACK, server.control, timeout=60)
        self._told: HTTPResponse | None = None

    def __enter__(self) -> Self:
        self._changes.request("GET", "/v1/changes")
        self._told = self._changes.getresponse()
        self.ask()
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        self._page.close()
        self._changes.close()

    def connect(self) -> None:
        """Anew: servers close connections on which nothing was asked for some seconds."""
        self._page.close()
        self._page.connect()

    def hear(self, event_id: str) -> None:
        assert self._told is not None
        while event_id.encode() not in (line := self._told.readline()):
            if not line:
                raise BrokenExchangeError("the server ended a stream of changes")

    def ask(self) -> None:
        headers = {"Accept": "text/html", "Forewarned-Refresh": "true"}
        self._page.request("GET", "/", headers=headers)

    def see(self, event_id: str) -> None:
        if f'id="bar-{event_id}"'.encode() not in self._read():
            raise BrokenExchangeError(f"a window does not show {event_id}")

    def _read(self) -> bytes:
        answer = self._page.getresponse()
        page = answer.read()
        if answer.status != 200:
            raise BrokenExchangeError(f"a window got {answer.status}")
        return page
