"""Windows of a real Chromium: how long a page takes to load, and when it shows something."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.exchange import BrokenExchangeError
from benchmarks.programs import MissingProgramError, find

PROGRAMS: Final = ("chromium-headless-shell", "chromium")
LONGEST_WAIT: Final = 120_000
"""ms: others may need this machine too"""

_LOADED: Final = "performance.getEntriesByType('navigation')[0].loadEventEnd"
_FETCHES: Final = """
performance.getEntriesByType("resource")
    .filter(({ initiatorType, name }) => initiatorType === "fetch" && !name.includes("/v1/"))
    .map(({ duration }) => duration)
"""
# Looked for again and again: pages allow no script that Playwright could look for it with.
_UNTIL: Final = """
([selector, words, longest]) => new Promise((tell) => {
    const end = performance.now() + longest;
    function look() {
        const found = [...document.querySelectorAll(selector)];
        if (found.some((one) => one.textContent.includes(words))) {
            tell(true);
        } else if (performance.now() > end) {
            tell(false);
        } else {
            setTimeout(look, 5);
        }
    }
    look();
})
"""
_WATCH: Final = """
([selector, longest]) => {
    if (document.querySelector(selector) !== null) {
        throw new Error(`${selector} is there already`);
    }
    window.seenAt = new Promise((tell) => {
        const observer = new MutationObserver(() => {
            if (document.querySelector(selector) !== null) {
                observer.disconnect();
                tell(Date.now());
            }
        });
        observer.observe(document.body, { subtree: true, childList: true, attributes: true });
        setTimeout(() => tell(null), longest);
    });
}
"""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    executable = next(filter(None, map(find, PROGRAMS)), None)
    if executable is None:
        raise MissingProgramError(f"no {PROGRAMS[0]}: `apt install {PROGRAMS[0]}` brings it")
    with sync_playwright() as playwright:
        # The sandbox wants more of the kernel than containers give, and all pages are our own.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        with contextlib.closing(browser):
            yield browser


class Window:
    """A page in a context of its own: what one person has open."""

    def __init__(self, browser: Browser, origin: str) -> None:
        self._context = browser.new_context(viewport={"width": 1280, "height": 900})
        self._context.set_default_timeout(LONGEST_WAIT)
        self._page: Page = self._context.new_page()
        self._origin = origin

    def load(self, path: str) -> float:
        """Milliseconds from the beginning of the navigation to the end of its load event."""
        answer = self._page.goto(self._origin + path, wait_until="load")
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        return float(self._ask(_LOADED))

    def leave(self) -> None:
        """To a page that requests nothing."""
        self._page.goto("about:blank")

    def go_live(self) -> None:
        """Until it hears of changes, and has caught up with what it may have missed."""
        self._page.wait_for_selector('#live-state[data-state="live"]')
        while not self.fetches():
            self._page.wait_for_timeout(50)

    def until(self, selector: str, words: str) -> float:
        """Wait until some element shows the words; the instant it did, by this process's clock."""
        if not self._page.evaluate(_UNTIL, [selector, words, LONGEST_WAIT]):
            raise BrokenExchangeError(f"{self._page.url} does not show {words!r} in {selector}")
        return time.monotonic()

    def watch_for(self, selector: str) -> None:
        """From now on, there is none yet; `seen_at` tells when there was one."""
        self._ask(_WATCH, [selector, LONGEST_WAIT])

    def seen_at(self) -> float:
        """Seconds of the system's clock, which is every process's of this machine."""
        if (seen := self._ask("window.seenAt")) is None:
            raise BrokenExchangeError(f"{self._page.url} does not show what was watched for")
        return float(seen) / 1e3

    def fetches(self) -> list[float]:
        """Milliseconds that each fetch of the page by its own script took, from ask to end."""
        found: list[float] = self._ask(_FETCHES)
        return found

    def close(self) -> None:
        self._context.close()

    def _ask(self, script: str, given: object = None) -> Any:  # whatever the script says
        return self._page.evaluate(script, given)
