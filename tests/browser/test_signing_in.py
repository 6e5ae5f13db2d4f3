"""S13: signing in, seeing no more than one may, and being signed out while a page is open."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenWindow
from tests.browser.windows import Window
from tests.end_to_end.server_process import Server, local_command, serving

UNAUTHORIZED = "401 (Unauthorized)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """One for each test: names of tokens are not used twice."""
    with serving(tmp_path, "--control-access", "token", "--workers", "0") as running:
        yield running


def token(server: Server, name: str, role: str) -> str:
    text: str = local_command(server, "token", "create", name, "--role", role)["token"]
    return text


async def sign_in(window: Window, text: str) -> None:
    await window.page.get_by_label("Token").fill(text)
    await window.page.get_by_role("button", name="Sign in").click()


async def test_a_reader_signs_in_looks_around_and_signs_out(
    server: Server, window: OpenWindow
) -> None:
    text = token(server, "rae", "reader")
    rae = await window("/vms/web")
    await expect(rae.page).to_have_title("Sign in · Forewarned")
    assert await rae.grave_issues() == []

    await sign_in(rae, text)

    await expect(rae.page).to_have_url(f"{rae.origin}/vms/web")
    await rae.is_live()
    await expect(rae.page.locator("header.top")).to_contain_text("rae, reader")
    await expect(rae.page.get_by_role("link", name="Actions", exact=True)).to_have_count(0)
    await expect(rae.page.get_by_role("link", name="Restart")).to_have_count(0)
    await expect(rae.page.locator(".clock-controls")).to_have_count(0)
    assert await rae.grave_issues() == []
    [cookie] = await rae.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")

    await rae.page.get_by_role("button", name="Sign out").click()

    await expect(rae.page).to_have_url(f"{rae.origin}/sign-in")
    assert await rae.context.cookies() == []
    await rae.open("/history")
    await expect(rae.page).to_have_title("Sign in · Forewarned")


async def test_a_wrong_token_is_told_beside_the_field(server: Server, window: OpenWindow) -> None:
    eve = await window("/")
    eve.expected.append("400 (Bad Request)")

    await sign_in(eve, "fw_guess")

    await expect(eve.page.locator("#problem-token")).to_contain_text("this token is unknown")
    await expect(eve.page.get_by_label("Token")).to_have_attribute("aria-invalid", "true")
    await expect(eve.page.get_by_label("Token")).to_have_value("")


async def test_a_maintainer_restarts_a_vm_in_their_own_name(
    server: Server, window: OpenWindow
) -> None:
    text = token(server, "max", "maintainer")
    server.get("/vm/web/metadata/scheduledevents?api-version=2020-07-01")
    ann = await window("/actions/restart?vm=web")
    await sign_in(ann, text)
    await expect(ann.page.get_by_role("heading", name="Restart VMs")).to_be_visible()

    await ann.page.get_by_role("button", name="Restart", exact=True).click()

    await expect(ann.page.locator("#event")).to_contain_text("Scheduled")
    await expect(ann.page.locator("#event-facts")).to_contain_text("max")


async def test_a_page_says_when_its_token_is_revoked_and_leads_to_signing_in_again(
    server: Server, window: OpenWindow
) -> None:
    rae = await window("/fleet?find=web")
    await sign_in(rae, token(server, "rae", "reader"))
    await rae.is_live()
    await expect(rae.page.locator("#sign-in-again")).to_be_hidden()
    # The server may tell the page so before the page asks for anything and is refused.
    rae.allowed.append(UNAUTHORIZED)

    local_command(server, "token", "revoke", "rae")

    await rae.page.wait_for_selector('#live-state[data-state="signed-out"]')
    await expect(rae.page.locator("#live-state")).to_have_text("Signed out")
    await rae.page.locator("#sign-in-again").click()
    await sign_in(rae, token(server, "zoe", "reader"))
    await expect(rae.page).to_have_url(f"{rae.origin}/fleet?find=web")
    await rae.is_live()
