"""5,000 VMs with 100 events: the next event to start is seen first, at a desktop and on a phone."""

import pytest
from playwright.async_api import Locator, ViewportSize, expect

from tests.browser.conftest import OpenWindow
from tests.browser.large_fleet import EVENTS, NEXT, fill
from tests.end_to_end.server_process import Server

SIZES = {
    "desktop": ViewportSize(width=1280, height=800),
    "phone": ViewportSize(width=390, height=844),
}


async def is_in_sight(what: Locator, size: ViewportSize) -> bool:
    """Whether all of it is inside the window as the page was opened, without scrolling."""
    box = await what.bounding_box()
    assert box is not None
    return (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= size["width"]
        and box["y"] + box["height"] <= size["height"]
    )


async def test_the_next_event_to_start_is_seen_without_scrolling(
    server: Server, window: OpenWindow
) -> None:
    event_id = fill(server)

    for name, size in SIZES.items():
        ann = await window("/", viewport=size)
        await ann.is_live()
        page = ann.page
        await expect(page.locator("#open-events .count")).to_have_text(str(EVENTS))

        bar = page.locator(f'[id="bar-{event_id}"]')
        assert await is_in_sight(bar, size), name
        assert await is_in_sight(bar.locator(".impact"), size), name
        first = page.locator("#next-event")
        await expect(first).to_contain_text(NEXT)
        assert await is_in_sight(first, size), name
        first_lane = page.locator("#timeline .lane").first
        assert await first_lane.get_attribute("id") == f"lane-vm/{NEXT}"
        assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
        # The list has it first too.
        await ann.open("/events")
        row = page.locator("#events tbody tr").first
        await expect(row).to_contain_text(NEXT)
        assert await is_in_sight(row, size), name


async def test_a_scale_set_is_opened_and_folded_by_keyboard_and_stays_so_while_things_happen(
    server: Server, window: OpenWindow
) -> None:
    fill(server)
    ann = await window("/", viewport=SIZES["desktop"])
    await ann.is_live()
    groups = ann.page.locator('#timeline [id^="lane-vmss/shop-3/"]')
    name = ann.page.locator('[id="lane-vmss/shop-3"] .lane-name')
    await expect(groups).to_have_count(0)

    await name.focus()
    await ann.page.keyboard.press("Enter")

    await expect(groups).to_have_count(3)
    await expect(name).to_have_attribute("aria-expanded", "true")
    await expect(name).to_be_focused()
    assert await ann.grave_issues() == []
    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web-7"]})
    await expect(ann.page.locator("#open-events .count")).to_have_text(str(EVENTS + 1))
    await expect(groups).to_have_count(3)
    await ann.page.keyboard.press("Enter")
    await expect(groups).to_have_count(0)


async def test_what_is_ticked_stays_ticked_while_events_come_and_go_and_is_approved_at_once(
    server: Server, window: OpenWindow
) -> None:
    fill(server)
    ann = await window("/events?type=Terminate", viewport=SIZES["desktop"])
    await ann.is_live()
    boxes = ann.page.locator('#events input[name="event"]')
    told = ann.page.locator("[data-ticked]")
    await expect(boxes).to_have_count(7)
    await boxes.nth(1).check()
    await boxes.nth(3).check()
    await expect(told).to_have_text("2 of 7 ticked:")
    ticked = [await boxes.nth(number).get_attribute("id") for number in (1, 3)]

    server.call("POST", "/v1/events", {"type": "Terminate", "resources": ["set-20_0"]})
    await expect(told).to_have_text("2 of 8 ticked:")
    gone = await boxes.nth(0).get_attribute("value")
    server.call("POST", f"/v1/events/{gone}/cancel", {"reason": "not today"})
    await expect(told).to_have_text("2 of 7 ticked:")
    assert [
        await box.get_attribute("id") for box in await boxes.all() if await box.is_checked()
    ] == ticked
    await ann.page.get_by_label("All", exact=True).check()
    await expect(told).to_have_text("7 of 7 ticked:")
    await ann.page.get_by_role("button", name="Approve").click()

    await expect(ann.page.locator(".outcome")).to_contain_text("7 approved.")
    await ann.is_live()
    await expect(ann.page.locator("#events")).to_contain_text("Started")
    assert await ann.grave_issues() == []


@pytest.mark.thorough  # test_pages.py has pages at the width of a phone
async def test_no_list_is_cut_off_on_a_phone(server: Server, window: OpenWindow) -> None:
    fill(server)
    ann = await window("/", viewport=SIZES["phone"])

    for path in ("/events", "/fleet", "/hosts", "/hosts/host-7", "/unread", "/sets", "/history"):
        await ann.open(path)
        # Whole, or else people have to find out that a table scrolls sideways.
        hidden = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
        assert set(await ann.page.evaluate(hidden)) <= {0}, path
