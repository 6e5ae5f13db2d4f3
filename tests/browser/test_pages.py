"""Every page: for everybody, at any width, and safe from what people call their VMs."""

import contextlib
import functools
import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.async_api import expect
from typing_extensions import override

from tests.browser.conftest import OpenWindow
from tests.browser.windows import Window
from tests.effort import amount
from tests.end_to_end.server_process import Server

OF_WEB = "/vm/web/metadata/scheduledevents?api-version=2020-07-01"
MARKUP = "<script>window.breached = true</script><img src=x onerror='window.breached = true'>"
QUOTES = '" onload="window.breached = true" x=\'${window.breached = true}\' {{ 7 * 7 }}'
RIGHT_TO_LEFT = "\u202e\u05e9\u05dc\u05d5\u05dd <b>\u05e2\u05d5\u05dc\u05dd</b>"


async def story(server: Server) -> str:
    """Something of everything: events that wait, have started and are over. The id of one.

    No one is there who could be told of them.
    """
    ops = {"name": "ops", "target": {"kind": "webhook", "url": "http://127.0.0.1:9/"}}
    known = server.call("GET", "/v1/subscriptions")["subscriptions"]
    if "ops" not in {each["name"] for each in known}:
        server.call("POST", "/v1/subscriptions", ops)
    for name in ("web", "db-0", "api_0"):
        server.get(f"/vm/{name}/metadata/scheduledevents?api-version=2020-07-01")
    first, *_ = server.call("POST", "/v1/events", {"type": "Reboot", "resources": ["web"]})[
        "events"
    ]
    server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["db-0"], "duration": "9s"})
    [going] = server.call("POST", "/v1/events", {"type": "Redeploy", "resources": ["db-1"]})[
        "events"
    ]
    server.call("POST", f"/v1/events/{going['event_id']}/approve")
    [gone] = server.call("POST", "/v1/events", {"type": "Terminate", "resources": ["api_0"]})[
        "events"
    ]
    server.call("POST", f"/v1/events/{gone['event_id']}/cancel", {"reason": "not today"})
    return str(first["event_id"])


def paths(event_id: str) -> tuple[str, ...]:
    actions = ("schedule", "restart", "maintain-set", "fail-host", "scale")
    return (
        "/",
        "/events",
        "/events?status=all",
        "/unread",
        "/fleet?find=db-1",
        "/hosts",
        "/hosts/host-01",
        "/scopes/avset/db?find=db-1",
        "/vms/web",
        f"/events/{event_id}",
        f"/events/{event_id}/cancel",
        "/tasks",
        "/actions",
        *(f"/actions/{action}" for action in actions),
        "/sets",
        "/sets/new",
        "/history?type=Freeze&from=2026-01-01",
        "/subscriptions",
        "/subscriptions/ops",
        "/subscriptions/ops/remove",
        "/subscribe",
        "/subscriptions/ops/edit",
        "/subscriptions/ops/rotate",
    )


def some(found: tuple[str, ...]) -> tuple[str, ...]:
    """Every third, unless there is time for all: pages are made of the same parts."""
    return found[:: amount(3, 1)]


async def test_no_page_keeps_anybody_out(server: Server, window: OpenWindow) -> None:
    event_id = await story(server)
    ann = await window("/")

    found: dict[str, list[str]] = {}
    for number, path in enumerate(some(paths(event_id))):
        await ann.page.emulate_media(color_scheme="light")
        await ann.open(path)
        issues = await ann.grave_issues()
        # In the dark only the colours are others, and pages share most of them.
        if number % amount(4, 1) == 0:
            await ann.page.emulate_media(color_scheme="dark")
            issues += await ann.grave_issues(rule="color-contrast")
        if issues:
            found[path] = issues

    assert found == {}


async def test_a_task_shows_as_soon_as_its_event_has_started(
    server: Server, window: OpenWindow
) -> None:
    event_id = await story(server)
    ann = await window(f"/tasks?event={event_id}")
    await expect(ann.page.locator("#tasks")).to_contain_text("No tasks match")

    server.call("POST", f"/v1/events/{event_id}/approve")

    await expect(ann.page.locator("#tasks tbody th")).to_have_text("web")


async def test_a_refused_form_says_so_beside_the_field_and_keeps_what_was_typed(
    window: OpenWindow,
) -> None:
    ann = await window("/actions/schedule")
    await ann.page.check('input[name="vm"][value="web"]')
    await ann.page.fill("#notice", "a while")

    await ann.page.click('button[value="send"]')

    await expect(ann.page.locator("#problem-notice")).to_be_visible()
    await expect(ann.page.locator("#notice")).to_have_attribute("aria-invalid", "true")
    assert await ann.page.input_value("#notice") == "a while"
    assert await ann.page.is_checked('input[name="vm"][value="web"]')
    assert await ann.grave_issues() == []
    # A refusal is an answer of 400, which browsers write down as an error.
    ann.expected.append("400 (Bad Request)")


async def test_a_subscription_that_a_browser_sends_back_as_shown_stays_as_it_was(
    server: Server, window: OpenWindow
) -> None:
    """Browsers have ways of their own with line breaks, and with boxes that are not ticked."""
    template = "\n{{ status }} </textarea>\n\n"
    ann = await window("/subscribe")
    await ann.page.fill("#name", "chat")
    await ann.page.fill("#url", "http://127.0.0.1:9/secret")
    await ann.page.select_option("#shape", "template")
    await ann.page.fill("#template", template)
    await ann.page.check('[name="types"][value="Reboot"]')
    await ann.page.fill("#vms", "web-*\ndb-*")
    await ann.page.click("main .primary")
    await expect(ann.page.locator("#secret")).to_contain_text("whsec_")
    added = server.call("GET", "/v1/subscriptions/chat")
    history = server.call("GET", "/v1/history")

    await ann.open("/subscriptions/chat/edit")
    await ann.page.click("main .primary")

    await expect(ann.page.locator(".done")).to_have_text("Saved.")
    assert added["shape"]["template"] == template
    assert added["filter"]["vms"] == ["web-*", "db-*"]
    assert server.call("GET", "/v1/subscriptions/chat") == added
    assert server.call("GET", "/v1/history") == history


async def test_no_page_is_wider_than_a_phone(server: Server, window: OpenWindow) -> None:
    event_id = await story(server)
    ann = await window("/", viewport={"width": 360, "height": 740})

    wide: dict[str, int] = {}
    for path in some(paths(event_id)):
        await ann.open(path)
        width = await ann.page.evaluate("document.documentElement.scrollWidth")
        if width > 360:
            wide[path] = width

    assert wide == {}


async def test_the_first_stop_of_the_keyboard_skips_to_the_page(window: OpenWindow) -> None:
    ann = await window("/")

    await ann.page.keyboard.press("Tab")
    await ann.page.keyboard.press("Enter")

    await expect(ann.page.locator("#main")).to_be_focused()


async def test_pages_work_without_the_script(server: Server, window: OpenWindow) -> None:
    await story(server)
    ann = await window("/", java_script_enabled=False)

    await expect(ann.page.locator("#timeline .bar.type-Reboot")).to_have_count(1)
    await ann.page.click("#timeline .timeline-zooms >> text=1d")
    await expect(ann.page.locator('#timeline [aria-current="true"]').last).to_have_text("1d")


async def test_five_hundred_events_are_drawn_kept_live_and_told_apart(
    server: Server, window: OpenWindow
) -> None:
    names = [f"shop-{number:03}" for number in range(500)]
    server.call("PUT", "/v1/fleet", {"vms": [{"name": name} for name in names]})
    server.call("POST", "/v1/events", {"type": "Reboot", "resources": names})
    server.get(OF_WEB)
    ann = await window("/")
    await ann.is_live()
    await expect(ann.page.locator("#timeline .bar")).to_have_count(500)

    [event] = server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"]})["events"]

    freeze = ann.page.locator(f'[id="bar-{event["event_id"]}"]')
    await expect(freeze).to_have_count(1)
    await freeze.hover()
    details = ann.page.locator("#timeline-details")
    await expect(details).to_contain_text("Freeze of web")
    await expect(details).to_be_in_viewport(ratio=1)
    await ann.page.locator("#timeline .lane-name", has_text="shop-042").click()
    await expect(ann.page.locator("#timeline .bar")).to_have_count(1)
    await expect(ann.page.locator("#timeline .bar")).to_contain_text("Reboot shop-042")


# --- S13 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "description",
    [
        pytest.param(MARKUP + QUOTES, id="markup"),
        pytest.param(RIGHT_TO_LEFT, id="right to left", marks=pytest.mark.thorough),
        pytest.param("x" * 200, id="long", marks=pytest.mark.thorough),
    ],
)
async def test_what_people_write_is_shown_as_text(
    server: Server, window: OpenWindow, description: str
) -> None:
    """S13: in the first picture, in the live one, and on the event's own page."""
    server.get(OF_WEB)
    ann = await window("/")
    await ann.is_live()
    asked = {"type": "Reboot", "resources": ["web"], "description": description}

    [event] = server.call("POST", "/v1/events", asked)["events"]

    await _shows(ann, "#open-events", description)
    await ann.page.hover("#timeline .bar")
    await _shows(ann, "#timeline-details", description)
    for path in ("/", f"/events/{event['event_id']}", "/vms/web"):
        await ann.open(path)
        await _shows(ann, "main", description)


async def _shows(window: Window, place: str, words: str) -> None:
    await expect(window.page.locator(place)).to_contain_text(words)
    assert await window.page.evaluate("window.breached") is None
    assert await window.page.locator("main script, main img").count() == 0


async def test_names_and_reasons_that_people_give_are_text_in_history(
    server: Server, window: OpenWindow
) -> None:
    """S13: operators may call themselves anything."""
    name = "<img src=x onerror='window.breached=true'>"
    reason = MARKUP
    server.get(OF_WEB)
    [event] = server.call("POST", "/v1/events", {"type": "Reboot", "resources": ["web"]})["events"]
    ann = await window(f"/events/{event['event_id']}")
    await ann.is_live()

    connection = HTTPConnection(server.control, timeout=60)
    with contextlib.closing(connection):
        path = f"/v1/events/{event['event_id']}/cancel"
        connection.request("POST", path, json.dumps({"reason": reason}), {"Forewarned-Actor": name})
        assert connection.getresponse().status == 200

    await _shows(ann, "main", reason)
    await ann.open("/history")
    await _shows(ann, "main", name)


async def test_what_is_typed_into_a_form_comes_back_as_text(window: OpenWindow) -> None:
    """S13"""
    ann = await window("/actions/schedule")
    hostile = '"><script>window.breached = true</script>'
    await ann.page.fill("#vms", "</textarea>" + hostile)
    await ann.page.fill("#notice", hostile)

    await ann.page.click('button[value="send"]')

    await expect(ann.page.locator("#problem-notice")).to_be_visible()
    assert await ann.page.input_value("#notice") == hostile
    assert await ann.page.evaluate("window.breached") is None
    await ann.open("/fleet?find=%22%3E%3Cscript%3Ewindow.breached%3Dtrue%3C%2Fscript%3E")
    assert await ann.page.evaluate("window.breached") is None
    ann.expected.append("400 (Bad Request)")


class _Foreign(BaseHTTPRequestHandler):
    """A page of another site, open in the same browser."""

    def __init__(self, target: str, *args: object) -> None:
        self._target = target
        super().__init__(*args)  # type: ignore[arg-type]  # what the server hands over

    def do_GET(self) -> None:
        page = (
            f'<!doctype html><form method="post" action="{self._target}">'
            '<input name="type" value="Reboot"><input name="vms" value="web">'
            '<input name="step" value="send"><button>Win a prize</button></form>'
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def foreign_site(server: Server) -> Iterator[str]:
    target = f"http://{server.control}/actions/schedule"
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Foreign, target)) as site:
        serving = threading.Thread(target=site.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{site.server_port}/"
        site.shutdown()
        serving.join()


async def test_a_form_of_another_site_is_refused_and_changes_nothing(
    server: Server, window: OpenWindow, foreign_site: str
) -> None:
    """S13"""
    server.get(OF_WEB)
    before = server.call("GET", "/v1/events?status=all")
    ann = await window("/")

    await ann.page.goto(foreign_site)
    async with ann.page.expect_response("**/actions/schedule") as answered:
        await ann.page.click("text=Win a prize")

    assert (await answered.value).status == 403
    assert server.call("GET", "/v1/events?status=all") == before
    ann.expected += ["asked another host", "403 (Forbidden)"]


async def test_no_site_can_put_a_page_into_a_frame(
    server: Server, window: OpenWindow, foreign_site: str
) -> None:
    """S13"""
    ann = await window("/")
    await ann.page.goto(foreign_site)

    await ann.page.evaluate(
        """(address) => new Promise((done) => {
            const frame = document.createElement("iframe");
            frame.src = address;
            frame.onload = done;
            document.body.append(frame);
        })""",
        f"http://{server.control}/",
    )

    [_, framed] = ann.page.frames
    assert "Forewarned" not in await framed.content()
    ann.expected += ["asked another host", "frame-ancestors"]
