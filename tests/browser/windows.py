"""Browser windows that watch what goes wrong in them while a test looks at something else."""

from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request

LONGEST_WAIT: Final = 60_000
"""Milliseconds, on a machine that is busy with other tests. What is live comes far sooner."""

_GRAVE: Final = frozenset({"serious", "critical"})
_TELL_VIOLATIONS: Final = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`);
});
"""


@dataclass(kw_only=True)
class Window:
    """A page in a browser of its own: what one person has open."""

    page: Page
    context: BrowserContext
    origin: str
    faults: list[str] = field(default_factory=list)
    """Errors of scripts, breaches of the content policy, requests to other hosts."""
    expected: list[str] = field(default_factory=list)
    """Parts of the faults that the test brings about on purpose."""
    allowed: list[str] = field(default_factory=list)
    """Parts of the faults that the test may bring about, or not."""
    _noted: anyio.Event = field(default_factory=anyio.Event)

    async def open(self, path: str) -> None:
        answer = await self.page.goto(self.origin + path)
        assert answer is not None
        assert answer.status < 400, f"{path}: {answer.status}"

    async def is_live(self) -> None:
        """Wait until it hears of changes."""
        await self.page.wait_for_selector('#live-state[data-state="live"]')

    async def grave_issues(self, *, rule: str | None = None) -> list[str]:
        """What axe-core finds that keeps people out, with the place it was found at.

        By all of its rules, or by one.
        """
        rules = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
        await self.page.evaluate(rules)
        options = {"resultTypes": ["violations"]} | ({} if rule is None else {"runOnly": [rule]})
        found: dict[str, Any] = await self.page.evaluate("axe.run", options)
        return [
            f"{issue['id']}: {node['target']} {node['failureSummary']}"
            for issue in found["violations"]
            if issue["impact"] in _GRAVE
            for node in issue["nodes"]
        ]

    async def fault(self, part: str) -> None:
        """Wait for a fault: a browser may tell of it long after what brought it about."""
        with anyio.fail_after(LONGEST_WAIT / 1000):
            while not any(part in fault for fault in self.faults):
                await self._noted.wait()

    async def close(self) -> list[str]:
        """What went wrong in it and was not expected. What was expected must have come."""
        for part in self.expected:
            await self.fault(part)
        await self.context.close()
        known = self.expected + self.allowed
        return [fault for fault in self.faults if not any(part in fault for part in known)]

    def note(self, fault: str) -> None:
        self.faults.append(fault)
        self._noted.set()
        self._noted = anyio.Event()

    def note_message(self, message: ConsoleMessage) -> None:
        # Browsers look for an icon beside answers that are no pages, such as refusals.
        if message.type == "error" and not message.location["url"].endswith("/favicon.ico"):
            self.note(message.text)

    def note_request(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "data:")):
            self.note(f"asked another host: {urlsplit(request.url).netloc}")


async def open_window(browser: Browser, origin: str, **options: Any) -> Window:
    """`options` are those of a new context: `color_scheme`, `viewport`."""
    context = await browser.new_context(**options)
    context.set_default_timeout(LONGEST_WAIT)
    await context.add_init_script(_TELL_VIOLATIONS)
    window = Window(page=await context.new_page(), context=context, origin=origin)
    window.page.on("console", window.note_message)
    window.page.on("pageerror", lambda error: window.note(str(error)))
    window.page.on("request", window.note_request)
    return window
