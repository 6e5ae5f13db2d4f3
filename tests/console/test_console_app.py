"""The console beside the API: its addresses, its headers, and whom it turns away."""

import json
import re
from dataclasses import replace

import httpx2
import pytest

from forewarned.console.app import create_console
from forewarned.core.model import Document
from forewarned.service.errors import LeaseLostError, StoreUnavailableError, UnknownOutcomeError
from tests.console.console_client import ConsoleClient, assert_guarded, console_client, text_of

PAGES = [
    "/",
    "/fleet",
    "/hosts",
    "/hosts/rack1",
    "/scopes/avset/db",
    "/scopes/vmss/api/0",
    "/vms/web",
    "/actions",
    "/actions/schedule",
    "/actions/restart",
    "/actions/redeploy",
    "/actions/evict",
    "/actions/delete",
    "/actions/scale",
    "/actions/maintain-set",
    "/actions/maintain-host",
    "/actions/predict-failure",
    "/actions/fail-host",
    "/sets",
    "/sets/new",
    "/history",
    "/subscriptions",
    "/subscribe",
]


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_there_with_its_headers(console: ConsoleClient, path: str) -> None:
    page = await console.see(path)

    assert page.startswith("<!doctype html>")
    assert '<main id="main"' in page
    assert 'href="#main"' in page


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_there_for_an_empty_fleet(path: str) -> None:
    async with console_client(fleet={}) as console:
        status = 404 if path.startswith(("/scopes", "/vms", "/hosts/")) else 200

        await console.see(path, status)


async def test_the_api_answers_at_its_own_addresses_as_before(console: ConsoleClient) -> None:
    unknown = await console.http.get("/v1/nothing")
    wrong = await console.http.post("/v1/health")

    assert (await console.ask("/v1/health"))["status"] == "ok"
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == "not_found"
    assert wrong.status_code == 405
    assert (await console.http.get("/metrics")).status_code == 200


@pytest.mark.parametrize(
    "path", ["/nothing", "/v2", "/actions/nothing", "/vms/nobody", "/events/1"]
)
async def test_an_unknown_address_is_a_page_that_says_so(console: ConsoleClient, path: str) -> None:
    page = await console.see(path, 404)

    assert "Not Found" in page


async def test_a_form_of_another_origin_is_refused_and_changes_nothing(
    console: ConsoleClient,
) -> None:
    answer = await console.http.post(
        "/actions/restart",
        content="vm=web&step=send",
        headers={"Origin": "http://evil.example"},
    )

    assert answer.status_code == 403
    assert await console.events() == []


@pytest.mark.parametrize("origin", ["null", "http://127.0.0.1:8169", "https://127.0.0.1:8170"])
async def test_an_origin_that_is_nearly_ours_is_refused(
    console: ConsoleClient, origin: str
) -> None:
    answer = await console.http.post("/clock/step", content="", headers={"Origin": origin})

    assert answer.status_code == 403


async def test_our_own_origin_may_send_forms(console: ConsoleClient) -> None:
    answer = await console.http.post(
        "/clock/step", content="", headers={"Origin": "http://127.0.0.1:8170"}
    )

    assert answer.status_code == 303


async def test_a_name_that_is_not_ours_is_refused(console: ConsoleClient) -> None:
    answer = await console.http.get("/", headers={"Host": "evil.example"})

    assert answer.status_code == 403


@pytest.mark.parametrize(
    "name",
    ["console.css", "timeline.css", "listings.css", "console.js", "suggestions.js", "icon.svg"],
)
async def test_files_are_served_and_asked_for_again(console: ConsoleClient, name: str) -> None:
    answer = await console.http.get(f"/static/{name}")

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_files_outside_the_folder_are_not_served(console: ConsoleClient) -> None:
    answer = await console.http.get("/static/../app.py")
    other = await console.http.get("/static/%2e%2e/app.py")

    assert {answer.status_code, other.status_code} == {404}


async def test_a_get_changes_nothing_where_a_form_would(console: ConsoleClient) -> None:
    page = await console.see("/clock/step", 405)

    assert "only accepts the form" in text_of(page)


async def test_no_page_loads_from_another_host_or_leads_there(console: ConsoleClient) -> None:
    for path in PAGES:
        page = await console.see(path)
        # The page of subscriptions shows a command with an address in it.
        shown = {"http://127.0.0.1:8169", "https://ops.example.com"}

        assert not re.search(r"""(src|href|action|url)\s*[=(]\s*["']?(https?:)?//""", page)
        assert set(re.findall(r"https?://[\w.:-]+", page)) <= shown


async def test_a_store_that_is_down_is_said_on_a_page_and_nothing_has_changed(
    console: ConsoleClient,
) -> None:
    console.store.is_down = True
    looked = await console.see("/", 503)
    sent = await console.send("/actions/restart", vm="web", step="send")
    console.store.is_down = False

    assert "the disk is full; nothing has changed" in text_of(looked).lower()
    assert sent.status_code == 503
    assert await console.events() == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UnknownOutcomeError(), "not known whether the change was made"),
        (LeaseLostError("fleet"), "part of which may be done"),
    ],
)
async def test_a_change_that_may_have_been_made_is_not_said_to_have_failed(
    console: ConsoleClient, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    async def lose(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(console.store, "transact", lose)
    sent = await console.send("/actions/restart", vm="web", step="send")

    assert sent.status_code == 503
    assert told in sent.text
    assert "nothing has changed" not in sent.text.lower()


async def test_a_script_gets_the_words_for_what_happens(console: ConsoleClient) -> None:
    [words] = re.findall("data-words='([^']*)'", await console.see("/"))

    assert json.loads(words)["interrupted"] == "impact began"
    assert json.loads(words)["carried_out"] == "carried out"


async def test_a_page_says_once_that_one_may_try_again(
    console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StoreUnavailableError("other changes conflicted with it: try again")

    monkeypatch.setattr(console.store, "transact", fail)
    sent = await console.send("/actions/restart", vm="web", step="send")

    assert "conflicted with it; nothing has changed. try again" in text_of(sent.text).lower()


async def test_the_page_of_a_failure_has_its_headers_too(console: ConsoleClient) -> None:
    """S13: whatever goes wrong, no page takes foreign script or is put into a frame."""

    def fail(document: Document, version: str) -> bytes:
        raise RuntimeError(f"a fault of ours: {document} {version}")

    app = create_console(replace(console.services, show_document=fail))
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        answer = await http.get("/vms/web")

    assert answer.status_code == 500
    assert_guarded(answer)
    assert "the server failed to handle this request" in text_of(answer.text).lower()
    assert "a fault of ours" not in answer.text
