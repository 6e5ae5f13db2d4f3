"""A form is sent once, however often it is clicked: the answer to the first may show a secret."""

import anyio
from playwright.async_api import Route, expect

from tests.browser.conftest import OpenWindow
from tests.end_to_end.server_process import Server

ROTATE = "/subscriptions/rotated/rotate"
# By the page itself: while a browser waits for the next page, it lets no test into this one.
CLICK_TWICE = """() => {
    const button = document.querySelector("main form[method=post] button");
    button.click();
    fetch("/answered").then(() => button.click()).then(() => fetch("/clicked"));
}"""


def _subscribe(server: Server, name: str) -> None:
    target = {"kind": "webhook", "url": "http://127.0.0.1:9/"}
    server.call("POST", "/v1/subscriptions", {"name": name, "target": target})


async def test_a_double_click_rotates_a_secret_once_and_shows_it(
    server: Server, window: OpenWindow
) -> None:
    _subscribe(server, "rotated")
    ann = await window(ROTATE)
    answered, clicked = anyio.Event(), anyio.Event()
    sent = 0

    async def rotate(route: Route) -> None:
        nonlocal sent
        sent += 1
        answer = await route.fetch()
        answered.set()
        await clicked.wait()
        await route.fulfill(response=answer)

    async def click_again(route: Route) -> None:
        await answered.wait()
        await route.fulfill()

    async def note_click(route: Route) -> None:
        clicked.set()
        await route.fulfill()

    for path, handler in ((ROTATE, rotate), ("/answered", click_again), ("/clicked", note_click)):
        await ann.page.route("**" + path, handler)

    await ann.page.evaluate(CLICK_TWICE)

    await expect(ann.page.locator("main")).to_contain_text("The secret was rotated.")
    await expect(ann.page.locator("main")).to_contain_text("whsec_")
    assert sent == 1


async def test_a_form_can_be_sent_again_on_a_page_that_one_came_back_to(
    server: Server, window: OpenWindow
) -> None:
    _subscribe(server, "paused")
    ann = await window("/subscriptions/paused")

    for _ in range(2):
        await ann.page.get_by_role("button", name="Pause").click()
        await expect(ann.page.get_by_role("button", name="Resume")).to_be_visible()
        server.call("POST", "/v1/subscriptions/paused/resume")
        await ann.page.go_back()

    await expect(ann.page.get_by_role("button", name="Pause")).to_be_visible()


async def test_forms_that_only_ask_may_ask_again_and_others_again_after_a_while(
    window: OpenWindow,
) -> None:
    ann = await window("/fleet")

    done = await ann.page.evaluate(
        """() => {
            const sends = (form) =>
                form.dispatchEvent(new SubmitEvent("submit", { bubbles: true, cancelable: true }));
            const [asking, changing] = ["get", "post"].map((method) => {
                const form = document.createElement("form");
                form.setAttribute("method", method);
                document.querySelector("main").append(form);
                return form;
            });
            const first = [asking, asking, changing, changing].map(sends);
            const now = performance.now.bind(performance);
            performance.now = () => now() + 10_000;
            return [...first, sends(changing)];
        }"""
    )

    assert done == [True, True, True, False, True]
