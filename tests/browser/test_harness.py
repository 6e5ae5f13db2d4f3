"""Windows note what goes wrong in them: a breach that goes unnoticed would prove nothing."""

import pytest
from playwright.async_api import Browser

from tests.browser.windows import open_window
from tests.end_to_end.server_process import Server

pytestmark = pytest.mark.thorough

_INLINE = """
const script = document.createElement("script");
script.textContent = "window.breached = true";
document.body.append(script);
"""


async def test_inline_script_is_blocked_and_noted(browser: Browser, server: Server) -> None:
    """S13"""
    window = await open_window(browser, f"http://{server.control}")
    await window.open("/")

    await window.page.evaluate(_INLINE)
    await window.page.evaluate("document.body.setAttribute('style', 'color: red')")

    assert await window.page.evaluate("window.breached") is None
    await window.fault("script-src")
    await window.fault("style-src")
    await window.context.close()


async def test_a_request_to_another_host_is_blocked_and_noted(
    browser: Browser, server: Server
) -> None:
    """S13"""
    window = await open_window(browser, f"http://{server.control}")
    await window.open("/")

    sent = await window.page.evaluate(
        "fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)"
    )

    assert sent == "TypeError"
    await window.fault("connect-src")
    await window.context.close()


async def test_grave_issues_are_found_where_there_are_some(
    browser: Browser, server: Server
) -> None:
    window = await open_window(browser, f"http://{server.control}")
    await window.open("/")

    await window.page.evaluate("document.body.append(document.createElement('button'))")

    assert any(issue.startswith("button-name") for issue in await window.grave_issues())
    await window.context.close()
