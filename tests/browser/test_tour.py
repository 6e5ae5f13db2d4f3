"""The tour: schedule, see, approve, gone, with two windows open, and both of them live."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenWindow
from tests.browser.windows import LONGEST_WAIT, Window
from tests.end_to_end.server_process import Server

OF_WEB = "/vm/web/metadata/scheduledevents?api-version=2020-07-01"


@pytest.fixture(scope="module")
def flags() -> tuple[str, ...]:
    return ("--workers", "1")


async def test_an_event_is_scheduled_seen_approved_and_gone_in_two_windows(
    server: Server, window: OpenWindow
) -> None:
    """I7: what VMs read, and what both windows show, is one and the same."""
    server.get(OF_WEB)
    ann, bob = await window("/"), await window("/")
    await bob.is_live()

    await ann.page.get_by_role("link", name="Schedule an event").click()
    await ann.page.select_option("#type", "Reboot")
    await ann.page.check('input[name="vm"][value="web"]')
    await ann.page.get_by_role("button", name="Show what will happen").click()
    await expect(ann.page.locator(".previewed")).to_contain_text("Reboot")
    await expect(bob.page.locator("#timeline .bar")).to_have_count(0)
    await ann.page.click('button[value="send"]')
    await expect(ann.page).to_have_url(re.compile(r"/events/[0-9A-F-]{36}"))

    await expect(bob.page.locator("#timeline .bar.type-Reboot.planned")).to_have_count(1)
    await expect(bob.page.locator("#open-events")).to_contain_text("web")
    [seen] = server.get(OF_WEB).json["Events"]
    assert seen["EventId"] in ann.page.url

    await ann.is_live()
    await bob.page.click("#timeline .bar")
    await bob.page.get_by_role("button", name="Approve").click()
    await expect(bob.page.locator("#event")).to_contain_text("Started")
    await expect(ann.page.locator("#event")).to_contain_text("console approved it")

    server.call("POST", "/v1/clock/step", {"by": "10m"})
    await expect(ann.page.locator("#event")).to_contain_text("it is over")
    await ann.open("/")
    await expect(ann.page.locator("#open-events .count")).to_have_text("0")
    assert server.get(OF_WEB).json["Events"] == []


async def test_an_approved_event_is_seen_to_jump_ahead(server: Server, window: OpenWindow) -> None:
    server.get(OF_WEB)
    [event] = server.call("POST", "/v1/events", {"type": "Redeploy", "resources": ["web"]})[
        "events"
    ]
    bob = await window("/")
    await bob.is_live()
    impact = bob.page.locator(f'[id="bar-{event["event_id"]}"] .impact')
    planned_at = await impact.get_attribute("x")

    server.approve(event["event_id"], path=OF_WEB)

    jumped = bob.page.locator("#timeline .bar.status-Started.jumped")
    await expect(jumped).to_have_count(1)
    started_at = await impact.get_attribute("x")
    assert started_at is not None
    assert planned_at is not None
    assert float(started_at.rstrip("%")) < float(planned_at.rstrip("%")) - 5


async def test_a_window_hears_again_of_changes_after_the_server_was_gone(
    server: Server, window: OpenWindow
) -> None:
    bob = await window("/")
    await bob.is_live()

    await bob.context.set_offline(True)
    await bob.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await bob.page.wait_for_selector('#live-state[data-state="lost"]')
    server.get(OF_WEB)
    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"]})
    await bob.context.set_offline(False)

    await bob.is_live()
    await expect(bob.page.locator("#timeline .bar.type-Freeze")).to_have_count(1)
    # Losing the server is what this test is about; a browser calls it an error.
    bob.expected.append("ERR_INTERNET_DISCONNECTED")


async def test_what_a_failing_server_could_not_show_is_shown_later(
    server: Server, window: OpenWindow
) -> None:
    server.get(OF_WEB)
    bob = await window("/")
    await bob.is_live()
    bob.expected.append("503 (Service Unavailable)")
    await bob.page.route(f"{bob.origin}/", lambda route: route.fulfill(status=503), times=1)

    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"]})

    await bob.fault("503 (Service Unavailable)")
    freeze = bob.page.locator("#timeline .bar.type-Freeze")
    await expect(freeze).to_have_count(1, timeout=3 * LONGEST_WAIT)


async def test_a_page_that_somebody_comes_back_to_hears_of_changes_once(window: OpenWindow) -> None:
    bob = await window("/")
    await bob.is_live()

    async with bob.page.expect_event("requestfailed") as given_up:
        await bob.page.evaluate(
            "window.dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"
        )

    assert (await given_up.value).url == f"{bob.origin}/v1/changes"
    await bob.is_live()


async def test_a_scale_set_with_a_ten_minute_delay_gives_its_instances_ten_minutes(
    server: Server, window: OpenWindow
) -> None:
    """The portal's steps, from creating the set to seeing its Terminate events."""
    ann = await window("/sets/new")
    await ann.page.fill("#name", "shopfront")
    await ann.page.fill("#capacity", "3")
    await ann.page.check('input[name="notified"][value="on"]')
    await ann.page.fill("#delay", "10")
    await ann.page.get_by_role("button", name="Create").click()
    await expect(ann.page.locator("body")).to_contain_text("shopfront")
    name = next(
        vm["name"]
        for scope in server.call("GET", "/v1/fleet")["scopes"]
        for vm in scope["vms"]
        if "shopfront" in vm["name"]
    )
    server.get(f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01")

    await ann.open(f"/vms/{name}")
    await ann.page.get_by_role("link", name="Delete").click()
    await expect(ann.page.locator(".previewed")).to_contain_text("Terminate")
    await ann.page.click('button[value="send"]')

    await expect(ann.page).to_have_url(re.compile(r"/events/[0-9A-F-]{36}"))
    [event] = server.call("GET", "/v1/events?type=Terminate")["events"]
    assert event["resources"] == [name]
    await ann.open("/")
    await expect(ann.page.locator("#timeline .bar.type-Terminate")).to_have_count(1)
    await ann.page.hover("#timeline .bar.type-Terminate")
    await expect(ann.page.locator("#timeline-details")).to_contain_text("UTC, in 10m")


# --- time ----------------------------------------------------------------------------------------


async def test_the_clock_is_stepped_in_one_window_and_moves_in_the_other(
    server: Server, window: OpenWindow
) -> None:
    server.get(OF_WEB)
    server.call("POST", "/v1/events", {"type": "Reboot", "resources": ["web"]})
    ann, bob = await window("/"), await window("/fleet")
    await bob.is_live()
    await expect(ann.page.locator("#clock")).to_contain_text("Virtual time, paused")
    before = await ann.page.inner_text("#clock-now")

    await ann.page.get_by_role("button", name="+1 minute").click()
    await expect(ann.page.locator("#clock-now")).not_to_have_text(before)
    stepped = await ann.page.inner_text("#clock-now")
    await expect(bob.page.locator("#clock-now")).to_have_text(stepped)

    await ann.page.get_by_role("button", name="To the next NotBefore").click()
    await expect(ann.page.locator("#timeline .bar.status-Started")).to_have_count(1)


async def test_the_clock_stays_live_where_it_was_not_moved(
    server: Server, window: OpenWindow
) -> None:
    ann = await window("/fleet")
    # What is refused is answered with 400, which browsers write down as an error.
    ann.expected.append("400 (Bad Request)")
    await ann.page.get_by_role("button", name="To the next NotBefore").click()
    await expect(ann.page.get_by_role("alert")).to_contain_text("no event is waiting")

    server.call("POST", "/v1/clock/speed", {"speed": 60})

    await expect(ann.page.locator("#clock")).to_contain_text("60× real")


async def test_the_now_line_moves_by_the_servers_clock(server: Server, window: OpenWindow) -> None:
    server.get(OF_WEB)
    server.call("POST", "/v1/events", {"type": "Reboot", "resources": ["web"]})
    ann = await window("/?zoom=1h")
    await ann.is_live()
    line = ann.page.locator("#now-line")
    drawn = re.search(r'id="now-line"[^>]* x="([\d.]+)%"', await _as_sent(ann))
    assert drawn is not None
    stands = await line.get_attribute("x")
    assert stands is not None
    # Paused, the script leaves it where the server has drawn it.
    assert float(stands.rstrip("%")) == pytest.approx(float(drawn[1]), abs=0.01)

    await ann.page.fill("#speed", "60")
    await ann.page.get_by_role("button", name="Set", exact=True).click()
    await expect(ann.page.locator("#clock")).to_contain_text("60× real")
    moving = await line.get_attribute("x")
    await expect(line).not_to_have_attribute("x", moving or "")


async def _as_sent(window: Window) -> str:
    """The page as the server sends it, before any script has been at it."""
    return await (await window.context.request.get(window.page.url)).text()


# --- the timeline by hand ------------------------------------------------------------------------


async def test_details_are_shown_on_hover_and_on_focus_and_go_with_escape(
    server: Server, window: OpenWindow
) -> None:
    server.get(OF_WEB)
    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"], "duration": "9s"})
    ann = await window("/")
    details = ann.page.locator("#timeline-details")
    await expect(details).to_be_hidden()

    await ann.page.hover("#timeline .bar")
    await expect(details).to_contain_text("Expected impact 9s")
    await ann.page.keyboard.press("Escape")
    await expect(details).to_be_hidden()
    await ann.page.focus("#timeline .bar")
    await expect(details).to_contain_text("Freeze of web")


async def test_zooming_needs_no_reload_and_can_be_taken_back(
    server: Server, window: OpenWindow
) -> None:
    ann = await window("/")
    await ann.page.evaluate("window.isTheSamePage = true")

    await ann.page.click("#timeline .timeline-zooms >> text=7d")
    await expect(ann.page.locator('#timeline [aria-current="true"]').last).to_have_text("7d")
    assert ann.page.url.endswith("/?zoom=7d")
    await ann.page.go_back()
    await expect(ann.page.locator('#timeline [aria-current="true"]').last).to_have_text("1h")

    assert await ann.page.evaluate("window.isTheSamePage") is True


async def test_what_is_being_typed_survives_a_change(server: Server, window: OpenWindow) -> None:
    server.get(OF_WEB)
    ann = await window("/")
    await ann.is_live()
    await ann.page.fill("#speed", "12")

    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"]})

    await expect(ann.page.locator("#timeline .bar")).to_have_count(1)
    assert await ann.page.input_value("#speed") == "12"


async def test_a_form_is_not_fetched_again_for_every_event(
    server: Server, window: OpenWindow
) -> None:
    server.get(OF_WEB)
    ann, bob = await window("/actions/schedule"), await window("/")
    await ann.is_live()
    await bob.is_live()
    fetched: list[str] = []
    ann.page.on("request", lambda request: fetched.append(request.url))

    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"]})

    await expect(bob.page.locator("#timeline .bar")).to_have_count(1)
    await expect(ann.page.locator("#announcer")).to_have_text("Freeze of web: scheduled")
    assert [url for url in fetched if "/actions/" in url] == []


async def test_the_page_of_a_vm_says_that_it_was_removed_until_it_is_there_again(
    server: Server, window: OpenWindow
) -> None:
    ann = await window("/vms/report")
    await ann.is_live()

    server.call("PUT", "/v1/fleet?prune=true", {"vms": [{"name": "web"}]})

    await expect(ann.page.locator("#live-state")).to_have_attribute("data-state", "gone")
    # A page that is gone answers with 404, which browsers write down as an error.
    ann.expected.append("404 (Not Found)")

    server.call("PUT", "/v1/fleet", {"vms": [{"name": "report"}]})

    await ann.is_live()


async def test_the_keyboard_gets_past_the_bars(server: Server, window: OpenWindow) -> None:
    server.get(OF_WEB)
    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"]})
    ann = await window("/")

    await ann.page.focus(".timeline-skip")
    await ann.page.keyboard.press("Enter")
    await expect(ann.page).to_have_url(re.compile(r"#timeline-legend$"))
    await ann.page.keyboard.press("Tab")

    assert await ann.page.evaluate("document.activeElement.closest('#timeline')") is None
