"""Pages as people open them: in a browser, and what the server alone takes for each."""

from collections.abc import Iterator
from typing import Final

from playwright.sync_api import Browser

from benchmarks.console.busy_fleet import BusyFleet
from benchmarks.console.rendering import paths, render
from benchmarks.console.windows import Window
from benchmarks.figures import Line, Spread, at_most, measured
from benchmarks.product import Product

A_PAGE: Final = at_most(1_000)
"""ms, from the beginning of the navigation to the end of its load event"""


def measure(server: Product, browser: Browser, fleet: BusyFleet, *, rounds: int) -> Iterator[Line]:
    window = Window(browser, f"http://127.0.0.1:{server.control}")
    # Its first page fetches styles and script too, and starts a process of the browser.
    window.load("/actions")
    for path in paths(fleet):
        loads = Spread.of(window.load(path) for _ in range(rounds))
        # Otherwise its script would ask for more while the server is looked at.
        window.leave()
        rendered = Spread.of(render(server, path) for _ in range(rounds))
        name = path.replace(fleet.an_event, "…")
        note = f"CPU time of the server: {rendered.median:.1f} ms"
        yield measured("load", name, loads, unit="ms", goal=A_PAGE, note=note)
    window.close()
