"""Many changes, many windows: a window fetches its page seldom, and only for what it shows."""

import time

from playwright.async_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.effort import amount
from tests.end_to_end.server_process import Server

COUNT = amount(20, 100)
BREATH = 0.25
"""Seconds, at least, between two fetches of a window."""


# How often the script has brought the page up to date since it was opened. The greeting of the
# stream has it do so once, as something may have been missed until then: that is waited for.
FETCHES = """() => new Promise((tell) => {
    function look() {
        const fetches = performance.getEntriesByType("resource").filter(
            ({ initiatorType, name }) => initiatorType === "fetch" && !name.includes("/v1/"));
        fetches.length > 0 ? tell(fetches.length) : setTimeout(look, 50);
    }
    look();
})"""


async def fetched(page: Page) -> int:
    found: int = await page.evaluate(FETCHES)
    return found


async def test_a_burst_of_changes_is_fetched_a_few_times_by_each_window(
    server: Server, window: OpenWindow
) -> None:
    names = [f"shop-{number:03}" for number in range(COUNT)]
    server.call("PUT", "/v1/fleet", {"vms": [{"name": name} for name in names]})
    for name in names:
        server.get(f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01")
    windows = [await window("/"), await window("/fleet")]
    for one in windows:
        await one.is_live()
    before = [await fetched(one.page) for one in windows]
    began = time.monotonic()

    for name in names:
        server.call("POST", "/v1/events", {"type": "Freeze", "resources": [name]})
    await expect(windows[0].page.locator("#timeline .bar")).to_have_count(COUNT)
    scopes = windows[1].page.locator("#fleet tbody tr", has_text="shop-")
    affected = scopes.filter(has=windows[1].page.locator('a[href^="/?scope="]'))
    await expect(affected).to_have_count(await scopes.count())

    took = time.monotonic() - began
    for one, already in zip(windows, before, strict=True):
        assert 1 <= await fetched(one.page) - already <= 2 + took / BREATH


async def test_a_window_on_one_vm_is_not_fetched_for_what_happens_to_others(
    server: Server, window: OpenWindow
) -> None:
    for name in ("web", "db-0"):
        server.get(f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01")
    ann = await window("/vms/web")
    await ann.is_live()
    before = await fetched(ann.page)

    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["db-0"]})
    await expect(ann.page.locator("#announcer")).to_contain_text("Freeze of db-0")
    server.call("POST", "/v1/events", {"type": "Reboot", "resources": ["web"]})
    await expect(ann.page.locator("#vm")).to_contain_text("Reboot")

    assert await fetched(ann.page) == before + 1
