"""A real server and a real browser for the tests of the console."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, async_playwright, expect

from tests.browser.windows import LONGEST_WAIT, Window, open_window
from tests.end_to_end.server_process import Server, serving
from tests.packages import HEADLESS_BROWSER, give_up, install

OpenWindow = Callable[..., Awaitable[Window]]
PAST_ANY_PICTURE = "30d"
"""Events that ended so long ago are in no timeline."""


@pytest.fixture(scope="session")
def executable() -> Path:
    if shutil.which(HEADLESS_BROWSER) is None:
        install(HEADLESS_BROWSER)
    # The whole of it does as well, where it is all there is.
    found = shutil.which(HEADLESS_BROWSER) or shutil.which("chromium")
    if found is None:
        give_up(f"{HEADLESS_BROWSER} is not installed: `apt install {HEADLESS_BROWSER}` brings it")
    return Path(found)


# No longer than its tests: while an async fixture is alive, all async tests share its event loop.
@pytest.fixture(scope="package")
async def browser(executable: Path, anyio_backend: object) -> AsyncIterator[Browser]:
    expect.set_options(timeout=LONGEST_WAIT)
    async with async_playwright() as playwright:
        # The sandbox wants more of the kernel than containers give, and all pages are our own.
        started = await playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox"]
        )
        yield started
        await started.close()


@pytest.fixture(scope="module")
def flags() -> tuple[str, ...]:
    """The console in the one process that does everything; the tour has it in the writer."""
    return ()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, flags: tuple[str, ...]) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), *flags) as running:
        yield running


@pytest.fixture
def server(started: Server) -> Server:
    """An emulator with its demo fleet, whose clock stands still; earlier tests are long ago."""
    started.call("POST", "/v1/reset")
    started.call("POST", "/v1/clock/step", {"by": PAST_ANY_PICTURE})
    return started


@pytest.fixture
async def window(browser: Browser, server: Server) -> AsyncIterator[OpenWindow]:
    """Opens windows. At the end of the test nothing may have gone wrong in any of them."""
    opened: list[Window] = []

    async def open_one(path: str = "/", **options: Any) -> Window:
        one = await open_window(browser, f"http://{server.control}", **options)
        opened.append(one)
        await one.open(path)
        return one

    yield open_one
    assert [fault for one in opened for fault in await one.close()] == []
