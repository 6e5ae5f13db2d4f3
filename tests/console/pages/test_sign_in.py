"""S13: with a token required, nobody sees or does more at the console than their role may."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.routing import compile_path

from forewarned.console.action_forms import ACTION_FORMS
from forewarned.console.app import PAGES, SIGN_IN_PAGES, role_needed
from forewarned.console.context import own_path
from forewarned.security.identities import InvalidTokenError, Role
from forewarned.service.listings import HistoryFilter, HistoryRow
from tests.console.console_client import ConsoleClient, assert_guarded, console_client, text_of
from tests.control.access_setup import PEOPLE, token_of

# The token of an actuator opens no page: tests/control/http/test_access.py.
ROLES = [role for role in Role if role is not Role.ACTUATOR]
NAMES = {
    "scope": "avset/db",
    "name": "web",
    "how": "step",
    "host": "rack1",
    "what": "vms",
    "vm": "web",
}


@pytest.fixture
async def guarded(anyio_backend: object) -> AsyncIterator[ConsoleClient]:
    async with console_client(access="token") as console:
        yield console


async def sign_in(console: ConsoleClient, role: Role, **fields: str) -> httpx2.Response:
    answer = await console.send("/sign-in", token=token_of(role), **fields)
    assert answer.status_code == 303, answer.text
    return answer


async def addresses(console: ConsoleClient) -> list[tuple[str, str, Role]]:
    """One for each row of the table, for each form of those that have many; and what it needs."""
    await console.switch_on("web")
    console.http.headers["Authorization"] = f"Bearer {token_of(Role.ADMIN)}"
    event = {"type": "Reboot", "resources": ["web"]}
    [made] = (await console.http.post("/v1/events", json=event)).json()["events"]
    # Of the name that is filled in for VMs.
    target = {"kind": "webhook", "url": "http://127.0.0.1:9/"}
    await console.http.post("/v1/subscriptions", json={"name": "web", "target": target})
    await sign_in(console, Role.ADMIN)
    edited = re.search(r"/sets/edit(\?id=[^\"]*)", await console.see("/sets"))
    assert edited is not None
    del console.http.headers["Authorization"]
    console.http.cookies.clear()
    found = []
    for method, path, needs, _ in PAGES:
        for action in ACTION_FORMS:
            names = NAMES | {"event_id": made["event_id"], "action": action.key}
            filled = re.sub(r"\{(\w+)[^}]*\}", r"{\1}", path).format(**names)
            query = edited[1] if path.startswith(("/sets/edit", "/sets/upgrade")) else ""
            found.append((method, filled + query, role_needed(needs, names)))
    return list(dict.fromkeys(found))


async def history(console: ConsoleClient) -> list[HistoryRow]:
    return await console.use_cases.engine.ask(
        lambda snapshot: snapshot.history(HistoryFilter(limit=1000))
    )


async def refusals(console: ConsoleClient) -> list[HistoryRow]:
    return [row for row in await history(console) if row.action == "refused"]


# --- the door ------------------------------------------------------------------------------------


async def test_without_a_session_every_address_leads_to_the_sign_in_page(
    guarded: ConsoleClient,
) -> None:
    found = await addresses(guarded)
    before = await history(guarded)

    for method, path, _ in found:
        answer = await guarded.http.request(method, path)

        assert answer.status_code == 303, path
        assert answer.headers["Location"].partition("?")[0] == "/sign-in"
        assert answer.content == b""
    assert await history(guarded) == before


async def test_an_unknown_address_is_not_told_from_a_known_one(guarded: ConsoleClient) -> None:
    for path in ("/nothing", "/actions/nothing", "/sign-in/x", "/sign-out", "/static"):
        assert (await guarded.http.get(path)).status_code == 303


async def test_the_sign_in_page_shows_nothing_of_the_server(guarded: ConsoleClient) -> None:
    page = await guarded.see("/sign-in")

    assert 'type="password"' in page
    assert 'autocomplete="off"' in page
    assert '<label for="token">' in page
    for hidden in ("clock-now", "console.js", "/fleet", "/v1/", "Sign out", "emulator"):
        assert hidden not in page
    assert (await guarded.http.get("/static/console.css")).status_code == 200


@pytest.mark.parametrize("path", ["/fleet?find=a%20b&page=2", "/vms/a%2Fb", "/scopes/vmss/api/0"])
async def test_after_signing_in_one_is_where_one_wanted_to_be(
    guarded: ConsoleClient, path: str
) -> None:
    led = await guarded.http.get(path)
    page = (await guarded.http.get(led.headers["Location"])).text
    field = re.search(r'name="next" value="([^"]*)"', page)

    assert field is not None
    answer = await sign_in(guarded, Role.READER, next=field[1].replace("&amp;", "&"))
    assert answer.headers["Location"] == path


@pytest.mark.parametrize(
    "foreign",
    [
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "",
        " ",
    ],
)
async def test_nobody_is_led_to_another_site(guarded: ConsoleClient, foreign: str) -> None:
    assert own_path(foreign) == "/"
    page = (await guarded.http.get("/sign-in", params={"next": foreign})).text
    assert 'name="next" value="/"' in page

    answer = await sign_in(guarded, Role.READER, next=foreign)

    assert answer.headers["Location"] == "/"
    again = await guarded.http.get("/sign-in", params={"next": foreign})
    assert (again.status_code, again.headers["Location"]) == (303, "/")


async def test_a_wrong_token_is_told_beside_the_field_and_recorded(guarded: ConsoleClient) -> None:
    wrong = await guarded.send("/sign-in", token="fw_guess", next="/fleet")
    empty = await guarded.send("/sign-in", token=" ")

    assert (wrong.status_code, empty.status_code) == (400, 400)
    assert "this token is unknown" in wrong.text
    assert 'aria-describedby="problem-token"' in wrong.text
    assert 'name="next" value="/fleet"' in wrong.text
    assert "fw_guess" not in wrong.text
    assert "paste your token" in empty.text
    assert "Set-Cookie" not in wrong.headers
    [row] = await refusals(guarded)
    assert (row.actor, row.address) == ("unknown", "127.0.0.1")
    assert "fw_guess" not in row.cause


async def test_guesses_of_one_address_are_recorded_once_a_second(guarded: ConsoleClient) -> None:
    for number in range(30):
        await guarded.send("/sign-in", token=f"fw_{number}")
        guarded.door.seconds += 0.1

    assert len(await refusals(guarded)) == 3


async def test_the_form_of_another_site_signs_nobody_in(guarded: ConsoleClient) -> None:
    answer = await guarded.http.post(
        "/sign-in",
        content=f"token={token_of(Role.ADMIN)}",
        headers={"Origin": "http://evil.example"},
    )

    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers


# --- the session ---------------------------------------------------------------------------------


async def test_the_cookie_is_for_no_script_no_other_site_and_no_other_path(
    guarded: ConsoleClient,
) -> None:
    given = (await sign_in(guarded, Role.READER)).headers["Set-Cookie"]

    name, _, attributes = given.partition("; ")
    assert re.fullmatch(r"forewarned-session=[\w.-]{300,600}", name)
    assert {each.lower() for each in attributes.split("; ")} == {
        "httponly",
        "path=/",
        "samesite=strict",
    }


async def test_over_tls_the_cookie_is_for_tls_and_this_host_alone() -> None:
    async with console_client(access="token", origin="https://127.0.0.1:8170") as console:
        given = (await sign_in(console, Role.READER)).headers["Set-Cookie"]

        assert given.startswith("__Host-forewarned-session=")
        assert "; secure" in given.lower()
        assert "domain" not in given.lower()
        assert (await console.http.get("/")).status_code == 200
        console.http.cookies.clear()
        assert (await console.http.get("/")).status_code == 303


async def test_every_sign_in_makes_another_session_and_ends_the_one_before(
    guarded: ConsoleClient,
) -> None:
    await sign_in(guarded, Role.READER)
    before = dict(guarded.http.cookies)
    await sign_in(guarded, Role.ADMIN)

    assert dict(guarded.http.cookies) != before
    guarded.http.cookies = httpx2.Cookies(before)
    assert (await guarded.http.get("/")).status_code == 303


async def test_a_page_that_is_used_gets_a_new_cookie_and_none_that_ends_a_session_is_undone(
    guarded: ConsoleClient,
) -> None:
    await sign_in(guarded, Role.READER)
    first = dict(guarded.http.cookies)
    guarded.door.seconds += 3600

    given = (await guarded.http.get("/v1/clock")).headers["Set-Cookie"]
    again = await guarded.http.get("/")
    guarded.http.cookies = httpx2.Cookies(first)
    out = await guarded.http.post("/sign-out")

    assert "HttpOnly" in given
    assert "SameSite=strict" in given
    assert again.status_code == 200
    assert "Set-Cookie" not in again.headers, "the new one will do for a while"
    assert out.headers.get_list("Set-Cookie") == [out.headers["Set-Cookie"]]
    assert "Max-Age=0" in out.headers["Set-Cookie"]


async def test_without_the_store_no_one_is_taken_for_signed_in(guarded: ConsoleClient) -> None:
    """S17: it may have been signed out of."""
    await sign_in(guarded, Role.READER)
    guarded.store.is_down = True

    answer = await guarded.http.get("/")

    assert answer.status_code == 503
    assert_guarded(answer)


async def test_the_bar_says_who_is_signed_in_and_signs_them_out(guarded: ConsoleClient) -> None:
    await sign_in(guarded, Role.APPROVER)
    page = await guarded.see("/")
    kept = dict(guarded.http.cookies)

    out = await guarded.send("/sign-out")

    assert "approver , approver Sign out" in text_of(page)
    assert (out.status_code, out.headers["Location"]) == (303, "/sign-in")
    assert "max-age=0" in out.headers["Set-Cookie"].lower()
    guarded.http.cookies.update(kept)
    assert (await guarded.http.get("/")).status_code == 303


async def test_a_token_that_expires_ends_the_session_with_it(guarded: ConsoleClient) -> None:
    await sign_in(guarded, Role.ADMIN)
    await guarded.see("/")

    past = datetime(2026, 1, 1, tzinfo=UTC)
    guarded.door.roster.people = [replace(each, expires_at=past) for each in PEOPLE]

    assert (await guarded.http.get("/")).status_code == 303
    assert (await guarded.send("/actions/restart", vm="web", step="send")).status_code == 303
    assert (await guarded.http.get("/v1/clock")).status_code == 401


async def test_a_revoked_token_ends_the_session_at_once(guarded: ConsoleClient) -> None:
    await sign_in(guarded, Role.ADMIN)
    await guarded.see("/")

    guarded.door.roster.people = ()

    assert (await guarded.http.get("/")).status_code == 303
    assert (await guarded.send("/actions/restart", vm="web", step="send")).status_code == 303
    assert (await guarded.http.get("/v1/clock")).status_code == 401


async def test_history_names_who_was_signed_in(guarded: ConsoleClient) -> None:
    await guarded.switch_on("web")
    await sign_in(guarded, Role.MAINTAINER)

    await guarded.send("/actions/restart", vm="web", step="send")

    page = text_of(await guarded.see("/history?actor=maintainer"))
    assert "scheduled" in page.lower()


async def test_the_page_of_an_event_names_the_role_that_may_approve_it(
    guarded: ConsoleClient,
) -> None:
    await guarded.switch_on("web")
    await sign_in(guarded, Role.MAINTAINER)

    answer = await guarded.send("/actions/restart", vm="web", step="send")

    page = text_of(await guarded.see(answer.headers["Location"]))
    assert "Who may approve web , and people with the role approver" in page


async def test_a_session_reads_changes_and_writes_nothing_at_the_api(
    guarded: ConsoleClient,
) -> None:
    await sign_in(guarded, Role.ADMIN)

    read = await guarded.http.head("/v1/changes")
    clock = await guarded.http.get("/v1/clock")
    other = await guarded.http.get("/v1/events")
    written = await guarded.http.post("/v1/hosts/rack1/fail")

    assert (read.status_code, clock.status_code) == (200, 200)
    assert (other.status_code, written.status_code) == (401, 401)
    assert written.json()["error"]["code"] == "token_missing"


async def test_a_bearer_token_is_no_session(guarded: ConsoleClient) -> None:
    header = {"Authorization": f"Bearer {token_of(Role.ADMIN)}"}

    assert (await guarded.http.get("/", headers=header)).status_code == 303


# --- roles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
async def test_a_page_is_for_its_role_and_those_above(guarded: ConsoleClient, role: Role) -> None:
    found = await addresses(guarded)
    await sign_in(guarded, role)

    for method, path, needs in found:
        guarded.door.seconds += 2
        before = len(await refusals(guarded))
        answer = await guarded.http.request(method, path)

        if role.covers(needs):
            assert answer.status_code != 403, path
            assert answer.headers.get("Location") != "/sign-in"
            continue
        assert answer.status_code == 403, path
        assert_guarded(answer)
        told = text_of(answer.text)
        assert f"This needs the role {needs}, and '{role}' has the role {role}" in told
        assert len(await refusals(guarded)) == before + 1


@pytest.mark.parametrize("role", ROLES)
async def test_no_page_leads_to_what_the_role_may_not(guarded: ConsoleClient, role: Role) -> None:
    found = await addresses(guarded)
    await sign_in(guarded, role)

    led: set[Role] = set()
    for method, path, needs in found:
        if method == "GET" and role.covers(needs) and "." not in path:
            page = await guarded.see(path)
            led |= {each for link in links(page) if (each := needed_for(*link)) is not None}

    assert {each for each in led if not role.covers(each)} == set()
    # Nor is anything hidden that the role may.
    assert {each for each in ROLES if role.covers(each)} == led


def links(page: str) -> set[tuple[str, str]]:
    """Method and path of all that can be clicked."""
    found = {("GET", address) for address in re.findall(r'<a [^>]*?href="([^"]*)"', page)}
    for form in re.findall(r"<form .*?</form>", page, re.DOTALL):
        method = "POST" if 'method="post"' in form else "GET"
        actions = re.findall(r'(?:form)?action="([^"]*)"', form)
        found |= {(method, address) for address in actions}
    return {(method, urlsplit(address).path) for method, address in found}


def needed_for(method: str, path: str) -> Role | None:
    """None for what is no page of the table."""
    for row_method, template, needs, _ in PAGES:
        match = compile_path(template)[0].fullmatch(path)
        if row_method == method and match is not None:
            return role_needed(needs, match.groupdict())
    is_known = not path or path.startswith(("/v1/", "/metrics")) or path == "/sign-in"
    assert is_known or (method, path) in {row[:2] for row in SIGN_IN_PAGES}, (method, path)
    return None


async def test_what_no_form_is_for_is_no_secret_to_those_who_may_look(
    guarded: ConsoleClient,
) -> None:
    await sign_in(guarded, Role.MAINTAINER)

    assert "there is no page" in text_of(await guarded.see("/actions/nothing", 404)).lower()


# --- where nobody has to sign in -----------------------------------------------------------------


async def test_an_open_console_has_no_sign_in_no_cookie_and_no_visitor(
    console: ConsoleClient,
) -> None:
    page = await console.http.get("/")

    assert "Set-Cookie" not in page.headers
    assert "Sign out" not in page.text
    assert "sign-in" not in page.text
    assert "Schedule an event" in page.text
    await console.see("/sign-in", 404)
    assert (await console.send("/sign-in", token=token_of(Role.ADMIN))).status_code in {404, 405}
    assert (await console.send("/sign-out")).status_code in {404, 405}


async def test_a_cookie_or_a_token_changes_nothing_at_an_open_console(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web")
    await console.http.post(
        "/actions/restart",
        content="vm=web&step=send",
        headers={
            "Cookie": "forewarned-session=x",
            "Authorization": f"Bearer {token_of(Role.READER)}",
        },
    )

    [event] = await console.events()
    history = await console.ask(f"/v1/history?event={event['event_id']}")
    assert {row["actor"] for row in history["history"]} == {"console"}


async def test_an_export_ends_with_the_session_that_asked_for_it() -> None:
    fleet = {"vms": [{"name": f"vm-{number:05}"} for number in range(1_100)]}
    async with console_client(access="token", fleet=fleet) as console:
        await sign_in(console, Role.READER)
        whole = await console.http.get("/history.jsonl")
        console.door.roster.revokes = True

        # What has been sent has been: the answer breaks off, and clients see that it is not whole.
        with pytest.raises(RuntimeError, match="response already started") as broken_off:
            await console.http.get("/history.jsonl")

    assert isinstance(broken_off.value.__cause__, InvalidTokenError)
    assert whole.text.count("\n") >= 1_100
