"""Windows that are kept open: what a change costs the server, and how soon it is seen."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from playwright.sync_api import Browser

from benchmarks import usage
from benchmarks.console.busy_fleet import BusyFleet, Scope
from benchmarks.console.processor import Meter
from benchmarks.console.rendering import A_CHANGE
from benchmarks.console.windows import Window
from benchmarks.figures import Line, Spread, at_most, measured
from benchmarks.product import Product

SEEN: Final = at_most(1_000)
"""ms, from before the change is asked for until the window shows it"""
SEVERAL: Final = 5
_AFTERWARDS: Final = 0.5
"""Seconds after it is seen, in which a window may ask for more, and others for the same."""
_MOST_FETCHES: Final = at_most(4)
"""by a window, in a second"""


class Shown(NamedTuple):
    """Where a change is to be seen."""

    selector: str
    words: str = ""


Change = Callable[[Product, Scope], Shown]


class _Cost(NamedTuple):
    processor: float
    seen: float
    fetch: float
    """The slowest of what the windows asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    what: str
    path: str
    change: Change
    windows: int = 1


def measure(server: Product, browser: Browser, fleet: BusyFleet, *, rounds: int) -> Iterator[Line]:
    for place, row in enumerate(_ROWS):
        with _open(browser, server, row.path, row.windows) as windows:
            costs = [
                # Scopes of the first page of the list, and none twice: of many events of one
                # scope that are alike, the timeline draws one bar.
                _cost(server, windows, row.change, fleet.scopes[place * rounds + number])
                for number in range(rounds)
            ]
        several = f", {row.windows} windows" if row.windows > 1 else ""
        what = f"{row.what}, {row.path} open{several}"
        spent = Spread.of(cost.processor / row.windows for cost in costs)
        fetch = Spread.of(cost.fetch for cost in costs).median
        note = f"the request that the window makes for it took {fetch:.0f} ms"
        each = "CPU time of the server" + (" for each" if several else "")
        yield measured("live", f"{what}: {each}", spent, unit="ms", goal=A_CHANGE, note=note)
        seen = Spread.of(cost.seen for cost in costs)
        yield measured("live", f"{what}: until it is seen", seen, unit="ms", goal=SEEN)
    yield from _burst(server, browser, fleet)


def _burst(server: Product, browser: Browser, fleet: BusyFleet) -> Iterator[Line]:
    """All scopes at once, three times over."""
    names = [[scope.vms[vm] for scope in fleet.scopes] for vm in (30, 31, 32)]
    with _open(browser, server, "/", 2) as windows:
        already = [len(window.fetches()) for window in windows]
        meter, began = Meter(server.pids), time.monotonic()
        for vms in names:
            made = server.schedule(vms, type="Freeze", notice="1h")
        for window in windows:
            window.until(f'[id="bar-{made[-1]["event_id"]}"], [aria-label*="Freeze × "]', "")
        took = time.monotonic() - began
        usage.wait(_AFTERWARDS)
        spent = meter.milliseconds()
        asked = [
            len(window.fetches()) - before for window, before in zip(windows, already, strict=True)
        ]
    what = f"{len(fleet.scopes) * len(names)} changes at once, / open, {len(windows)} windows"
    note = f"seen by all after {took:.1f} s; {spent:.0f} ms of the server's CPU time"
    often = Spread.of(count / (took + _AFTERWARDS) for count in asked)
    yield measured(
        "burst", f"{what}: fetches a second", often, unit="", goal=_MOST_FETCHES, note=note
    )


@contextlib.contextmanager
def _open(browser: Browser, server: Product, path: str, count: int) -> Iterator[list[Window]]:
    windows = [Window(browser, f"http://127.0.0.1:{server.control}") for _ in range(count)]
    try:
        for window in windows:
            window.load(path)
        for window in windows:
            window.go_live()
        yield windows
    finally:
        for window in windows:
            window.close()


def _cost(server: Product, windows: list[Window], change: Change, scope: Scope) -> _Cost:
    already = [len(window.fetches()) for window in windows]
    meter, began = Meter(server.pids), time.monotonic()
    shown = change(server, scope)
    seen = max(window.until(*shown) for window in windows) - began
    usage.wait(_AFTERWARDS)
    spent = meter.milliseconds()
    asked = [
        took
        for window, before in zip(windows, already, strict=True)
        for took in window.fetches()[before:]
    ]
    return _Cost(processor=spent, seen=seen * 1e3, fetch=max(asked, default=0.0))


# --- changes -------------------------------------------------------------------------------------


def _schedule(server: Product, scope: Scope) -> Shown:
    return Shown(f'[id="bar-{_one(server, scope)}"]')


def _approve(server: Product, scope: Scope) -> Shown:
    event_id = _one(server, scope)
    server.call("POST", f"/v1/events/{event_id}/approve")
    return Shown(f'[id="bar-{event_id}"].status-Started')


def _step(server: Product, _: Scope) -> Shown:
    """By so little that nothing falls due, but all that has started goes on."""
    clock = server.call("POST", "/v1/clock/step", {"by": "2s"})
    return Shown("#clock-now", clock["now"][:19].replace("T", " "))


def _schedule_for_fleet(server: Product, scope: Scope) -> Shown:
    before = len(server.call("GET", f"/v1/events?scope={scope.id}")["events"])
    _one(server, scope)
    return Shown(f'[id="scope-{scope.id}"]', f"{before + 1} open event")


def _one(server: Product, scope: Scope) -> str:
    [event] = server.schedule([scope.vms[10]], type="Freeze", notice="50m")
    return str(event["event_id"])


_ROWS: Final = (
    _Row(what="schedule", path="/", change=_schedule),
    _Row(what="approve", path="/", change=_approve),
    _Row(what="step the clock", path="/", change=_step),
    _Row(what="schedule", path="/fleet", change=_schedule_for_fleet),
    _Row(what="step the clock", path="/fleet", change=_step),
    _Row(what="schedule", path="/", change=_schedule, windows=SEVERAL),
)
