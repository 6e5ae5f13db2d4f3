"""Names are suggested while one types, by keyboard and by pointer; and the bars fold on a phone."""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenWindow
from tests.end_to_end.server_process import Server

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def shops(server: Server) -> None:
    names = [f"shop-{number:03}" for number in range(300)]
    server.call("PUT", "/v1/fleet", {"vms": [{"name": name, "host": "rack1"} for name in names]})


@pytest.mark.usefixtures("shops")
async def test_names_are_chosen_by_keyboard_and_typing_goes_on(window: OpenWindow) -> None:
    ann = await window("/actions/restart")
    await ann.page.focus("#vms")

    await ann.page.keyboard.type("shop-01")
    # As many are suggested before the last letters are typed.
    options = ann.page.locator("#suggestions [role=option]")
    await expect(options.first).to_contain_text("shop-010")
    await expect(options).to_have_count(10)
    await ann.page.keyboard.press("ArrowDown")
    await ann.page.keyboard.press("ArrowDown")
    chosen = ann.page.locator('[role=option][aria-selected="true"]')
    await expect(chosen).to_contain_text("shop-011 vm/shop-011, on rack1")
    await expect(ann.page.locator("#vms")).to_have_attribute(
        "aria-activedescendant", await chosen.get_attribute("id") or ""
    )
    assert await ann.grave_issues() == []
    await ann.page.keyboard.press("Enter")
    await ann.page.keyboard.type("299")
    await expect(ann.page.locator("#suggestions [role=option]")).to_have_count(1)
    await ann.page.locator("#suggestions [role=option]").click()

    await expect(ann.page.locator("#vms")).to_have_value("shop-011 shop-299 ")
    await expect(ann.page.locator("#vms")).to_be_focused()
    await expect(ann.page.locator("#suggestions")).to_have_count(0)


@pytest.mark.usefixtures("shops")
async def test_a_field_for_one_name_is_a_combobox_that_escape_closes(window: OpenWindow) -> None:
    ann = await window("/actions/fail-host")
    await ann.page.focus("#host")
    field = ann.page.get_by_role("combobox", name="Host")
    await expect(field).to_have_attribute("aria-expanded", "false")

    await ann.page.keyboard.type("rack")
    await expect(field).to_have_attribute("aria-expanded", "true")
    assert await ann.grave_issues() == []
    await ann.page.keyboard.press("Escape")
    await expect(ann.page.locator("#suggestions")).to_have_count(0)
    await ann.page.keyboard.press("ArrowDown")
    await expect(ann.page.locator("#suggestions [role=option]")).to_have_count(1)
    await ann.page.keyboard.press("ArrowDown")
    await ann.page.keyboard.press("Enter")

    await expect(field).to_have_value("rack1")
    await expect(field).to_have_attribute("aria-expanded", "false")
    await ann.page.keyboard.press("Enter")
    await expect(ann.page.locator(".previewed")).to_contain_text("shop-000")


async def test_without_the_script_names_are_typed(window: OpenWindow) -> None:
    ann = await window("/actions/restart", java_script_enabled=False)

    await ann.page.fill("#vms", "web")
    await ann.page.get_by_role("button", name="Show what will happen").click()

    await expect(ann.page.locator(".previewed")).to_contain_text("Reboot")
    await expect(ann.page.locator("#suggestions")).to_have_count(0)


@pytest.mark.parametrize("is_scripted", [True, False])
async def test_pages_and_clock_are_folded_on_a_phone_and_open_on_a_desk(
    window: OpenWindow, is_scripted: bool
) -> None:
    desktop = await window("/fleet", java_script_enabled=is_scripted)
    phone = await window("/fleet", viewport=PHONE, java_script_enabled=is_scripted)
    hosts = phone.page.get_by_role("link", name="Hosts", exact=True)
    step = phone.page.get_by_role("button", name="+1 minute")

    await expect(desktop.page.get_by_role("link", name="Hosts", exact=True)).to_be_visible()
    await expect(desktop.page.get_by_role("button", name="+1 minute")).to_be_visible()
    await expect(desktop.page.locator(".menu > summary")).to_be_hidden()
    await expect(hosts).to_be_hidden()
    await expect(step).to_be_hidden()

    await phone.page.get_by_text("Move the clock").click()
    await expect(step).to_be_visible()
    await phone.page.focus(".menu > summary")
    await phone.page.keyboard.press("Enter")
    await hosts.click()

    await expect(phone.page.get_by_role("heading", name="Hosts")).to_be_visible()


async def test_a_clock_that_is_unfolded_stays_so_while_the_page_changes(
    server: Server, window: OpenWindow
) -> None:
    ann = await window("/fleet", viewport=PHONE)
    await ann.is_live()
    await ann.page.get_by_text("Move the clock").click()

    server.call("POST", "/v1/clock/step", {"by": "10m"})
    server.call("POST", "/v1/clock/speed", {"speed": 60})

    await expect(ann.page.locator("#clock")).to_contain_text("60× real")
    await expect(ann.page.get_by_role("button", name="+1 minute")).to_be_visible()
