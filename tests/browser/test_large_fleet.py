"""5,000 VMs with 100 events: the next event to start is seen first, at a desk and on a phone."""

import pytest
from playwright.async_api import Locator, ViewportSize, expect

from tests.browser.conftest import OpenWindow
from tests.browser.large_fleet import EVENTS, NEXT, fill
from tests.end_to_end.serving import Server

pytestmark = pytest.mark.xdist_group("browser")

SIZES = {
    "desk": ViewportSize(width=1280, height=800),
    "phone": ViewportSize(width=390, height=844),
}


@pytest.fixture
def flags() -> tuple[str, ...]:
    return ("--workers", "0")


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
        await expect(page.locator("#timeline")).to_have_attribute("data-events", str(EVENTS))

        bar = page.locator(f'[id="bar-{event_id}"]')
        assert await is_in_sight(bar, size), name
        [impact] = await bar.locator(".impact").all()
        assert await is_in_sight(impact, size), name
        first = page.locator("#next-event")
        await expect(first).to_contain_text(NEXT)
        assert await is_in_sight(first, size), name
        first_lane = page.locator("#timeline .lane").first
        assert await first_lane.get_attribute("id") == f"lane-vm/{NEXT}"
        assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
