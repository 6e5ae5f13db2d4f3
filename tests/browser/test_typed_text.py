"""What a person is typing or reading on a live page stays, whatever changes around it."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenWindow
from tests.browser.windows import Window
from tests.end_to_end.server_process import Server

FLEET = {"vms": [{"name": "till", "host": "rack1"}, {"name": "shelf", "host": "rack1"}]}


def _maintained(server: Server) -> list[str]:
    """Two events of one host, neither of which starts before both are approved."""
    server.call("PUT", "/v1/fleet?prune=true", FLEET)
    for name in ("till", "shelf"):
        server.get(f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01")
    made = server.call("POST", "/v1/hosts/rack1/maintain", {"type": "Freeze"})["events"]
    return [event["event_id"] for event in made]


async def test_a_reason_that_is_being_typed_survives_what_happens_to_its_event(
    server: Server, window: OpenWindow
) -> None:
    _, mine = _maintained(server)
    ann = await window(f"/events/{mine}/cancel")
    await ann.is_live()
    await expect(ann.page.locator("#cancel-preview")).to_contain_text("shelf")
    await ann.page.focus("#reason")
    await ann.page.keyboard.type("the customer is on")

    server.call("PUT", "/v1/fleet?prune=true", {"vms": FLEET["vms"][:1]})
    await expect(ann.page.locator("#cancel-preview")).not_to_contain_text("shelf")
    await ann.page.keyboard.type(" stage")

    await expect(ann.page.locator("#reason")).to_have_value("the customer is on stage")
    await expect(ann.page.locator("#reason")).to_be_focused()
    await ann.page.get_by_role("button", name="Cancel the event").click()
    await expect(ann.page.locator("#event")).to_contain_text(
        "It was canceled: the customer is on stage"
    )


async def test_a_form_goes_when_there_is_nothing_left_to_cancel(
    server: Server, window: OpenWindow
) -> None:
    mine, other = _maintained(server)
    ann = await window(f"/events/{mine}/cancel")
    await ann.is_live()
    await ann.page.fill("#reason", "too late")

    for event_id in (mine, other):
        server.call("POST", f"/v1/events/{event_id}/approve")

    await expect(ann.page.locator("#cancel-preview")).to_contain_text("has started")
    await expect(ann.page.locator("#reason")).to_have_count(0)


async def test_a_page_stays_live_after_what_was_refused_on_it(
    server: Server, window: OpenWindow
) -> None:
    [mine, other] = _maintained(server)
    ann = await window(f"/events/{mine}/cancel")
    # Without the script the page is not brought up to date, and a form can come too late.
    await ann.page.evaluate("document.querySelectorAll('[data-live]').forEach((e) => (e.id = ''))")
    for event_id in (mine, other):
        server.call("POST", f"/v1/events/{event_id}/approve")
    # A refused form is answered with 400, which browsers write down as an error.
    ann.expected.append("400 (Bad Request)")

    await ann.page.get_by_role("button", name="Cancel the event").click()
    await expect(ann.page.get_by_role("alert")).to_contain_text("can no longer be canceled")
    await ann.is_live()
    server.call("POST", "/v1/clock/step", {"by": "30m"})

    await expect(ann.page.locator("#cancel-preview")).to_contain_text("is over")


CHANGES = {
    "something before it goes": (
        "<p>one</p> <div>two</div> <form><input></form>",
        "<div>two</div> <form><input></form>",
    ),
    "something comes before it": (
        "<form><input></form>",
        "<p>one</p> <div>two</div> <form><input></form>",
    ),
    "it is named, and what is before it goes": (
        "<p>one</p> <form id='f'><input></form>",
        "<form id='f'><input></form>",
    ),
    "it is named, and changes places": (
        "<p id='a'>one</p><p id='b'>two</p><form id='f'><input></form>",
        "<form id='f'><input></form><p id='b'>two</p><p id='a'>1</p>",
    ),
    "all else is another": (
        "<p>one</p><ul><li>two</li></ul><form><input></form><p>three</p>",
        "<h2>one</h2><form><input></form><ul><li>2</li><li>3</li></ul>",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_text_and_focus_stay_where_they_are(window: OpenWindow, change: str) -> None:
    """And the page is what the server has sent, all the same."""
    before, after = CHANGES[change]
    ann = await window("/actions")

    became = await ann.page.evaluate(
        """async ([before, after]) => {
            const { morph } = await import("/static/morph.js");
            const [old, wanted] = [document.createElement("div"), document.createElement("div")];
            [old.innerHTML, wanted.innerHTML] = [before, after];
            document.body.append(old);
            const input = old.querySelector("input");
            input.focus();
            input.value = "typed";
            morph(old, wanted);
            return {
                markup: old.innerHTML,
                isWanted: old.isEqualNode(wanted),
                isFocused: document.activeElement === input,
                text: old.querySelector("input").value,
            };
        }""",
        [before, after],
    )

    assert became["isWanted"], became["markup"]
    assert became["isFocused"]
    assert became["text"] == "typed"


async def test_details_stay_as_open_as_whoever_reads_them_left_them(
    server: Server, window: OpenWindow
) -> None:
    mine, _ = _maintained(server)
    ann = await window(f"/events/{mine}")
    await ann.is_live()
    shown = ann.page.locator("#event-facts details")
    await shown.nth(0).locator("summary").click()
    await shown.nth(1).locator("summary").click()

    server.call("POST", f"/v1/events/{mine}/approve")

    await expect(ann.page.locator("#event")).to_contain_text("Scheduled approved")
    await expect(shown.nth(0)).not_to_have_attribute("open", "")
    await expect(shown.nth(1)).to_have_attribute("open", "")


# --- by keyboard alone ---------------------------------------------------------------------------


async def test_an_event_is_scheduled_and_approved_without_a_mouse(
    server: Server, window: OpenWindow
) -> None:
    server.get("/vm/web/metadata/scheduledevents?api-version=2020-07-01")
    ann = await window("/")

    await _tab_to(ann, "Schedule an event")
    await ann.page.keyboard.press("Enter")
    await expect(ann.page).to_have_url(re.compile("/actions/schedule$"))
    await _tab_to(ann, "type")
    await ann.page.keyboard.type("Reb")
    await _tab_to(ann, "vm=web")
    await ann.page.keyboard.press("Space")
    await _tab_to(ann, "Show what will happen")
    await ann.page.keyboard.press("Enter")
    await expect(ann.page.locator(".previewed")).to_be_focused()
    await expect(ann.page.locator(".previewed")).to_contain_text("Reboot web")
    await _tab_to(ann, "Schedule")
    await ann.page.keyboard.press("Enter")
    await expect(ann.page.locator("#event")).to_contain_text("It has not been approved yet")
    await _tab_to(ann, "Approve")
    await ann.page.keyboard.press("Enter")

    await expect(ann.page.locator("#event")).to_contain_text("console approved it")


async def test_a_field_that_is_wrong_has_the_focus(window: OpenWindow) -> None:
    """Of a long form, what is to be put right would be out of sight otherwise."""
    ann = await window("/actions/schedule?vm=web")
    await ann.page.fill("#notice", "soon")
    # A refused form is answered with 400, which browsers write down as an error.
    ann.expected.append("400 (Bad Request)")

    await ann.page.get_by_role("button", name="Show what will happen").click()

    await expect(ann.page.locator("#notice")).to_be_focused()
    await expect(ann.page.locator("#notice")).to_have_value("soon")
    await expect(ann.page.locator("#problem-notice")).to_be_in_viewport()


async def _tab_to(window: Window, wanted: str) -> None:
    """Press Tab until the focus is on what says this, or is named so."""
    for _ in range(60):
        await window.page.keyboard.press("Tab")
        here = await window.page.evaluate(
            """() => {
                const { name, value, textContent, localName } = document.activeElement;
                if (localName === "button" || localName === "a") return textContent.trim();
                return name === "vm" ? `vm=${value}` : name ?? "";
            }"""
        )
        if here == wanted:
            return
    raise AssertionError(f"the keyboard does not get to {wanted!r}")
