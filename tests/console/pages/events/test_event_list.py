"""The list of events: filters in its address, and approving and canceling several at once."""

import html
import re
from collections.abc import AsyncIterator

import pytest

from forewarned.security.identities import Role
from tests.console.console_client import ConsoleClient, console_client, text_of
from tests.control.access_setup import token_of


async def _story(console: ConsoleClient) -> dict[str, str]:
    """A Reboot by the user and a Freeze wait; a Redeploy has started. Ids, by VM."""
    await console.switch_on("web", "db-0", "report")
    for type_, vm, source in [
        ("Reboot", "web", "User"),
        ("Freeze", "db-0", "Platform"),
        ("Redeploy", "report", "Platform"),
    ]:
        await console.send("/actions/schedule", type=type_, vm=vm, source=source, step="send")
    found = {event["resources"][0]: str(event["event_id"]) for event in await console.events()}
    await console.send(f"/events/{found['report']}/approve")
    return found


def rows(page: str) -> list[str]:
    return re.findall(r'<tr id="row-([^"]*)"', page)


def outcome(page: str) -> str:
    found = re.search(r'<section class="\w+ outcome".*?</section>', page, re.DOTALL)
    assert found is not None
    return text_of(found[0])


async def statuses(console: ConsoleClient) -> dict[str, str]:
    shown = (await console.ask("/v1/events?status=all"))["events"]
    return {event["resources"][0]: event["status"] for event in shown}


# --- filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["web", "db-0", "report"]),
        ("?status=Scheduled", ["web", "db-0"]),
        ("?status=Started", ["report"]),
        ("?status=Completed", []),
        ("?status=all", ["web", "db-0", "report"]),
        ("?status=soon", ["web", "db-0"]),
        ("?status=overdue", []),
        ("?type=Freeze", ["db-0"]),
        ("?source=User", ["web"]),
        ("?host=rack1", ["web", "report"]),
        ("?host=rack1&status=Started", ["report"]),
        ("?scope=avset/db", ["db-0"]),
        ("?scope=avset/db&type=Reboot", []),
        ("?type=&source=&host=&scope=", ["web", "db-0", "report"]),
    ],
)
async def test_the_address_says_which_events_are_listed(
    console: ConsoleClient, query: str, found: list[str]
) -> None:
    ids = await _story(console)

    page = await console.see(f"/events{query}")

    assert rows(page) == [ids[vm] for vm in found]


@pytest.mark.parametrize("query", ["?type=Explode", "?status=late", "?source=Me", "?page=0"])
async def test_a_filter_that_no_event_can_match_is_refused_beside_it(
    console: ConsoleClient, query: str
) -> None:
    page = await console.see(f"/events{query}", status=400)

    assert 'class="problem"' in page
    assert rows(page) == []


async def test_what_is_chosen_stays_chosen_and_leads_back_to_itself(console: ConsoleClient) -> None:
    await _story(console)

    page = await console.see("/events?status=Scheduled&host=rack1")

    assert '<option value="Scheduled" selected>' in page
    assert 'name="host" value="rack1"' in page
    assert 'data-address="/events?status=Scheduled&amp;host=rack1"' in page


async def test_hosts_and_scopes_are_suggested_as_they_are_typed(console: ConsoleClient) -> None:
    page = await console.see("/events")

    assert re.findall(r'name="(\w+)"[^>]* data-suggest="(\w+)"', page) == [
        ("host", "hosts"),
        ("scope", "scopes"),
    ]


async def test_a_list_of_many_has_pages(console: ConsoleClient) -> None:
    names = [f"vm-{number}" for number in range(130)]
    async with console_client(fleet={"vms": [{"name": name} for name in names]}) as large:
        await large.switch_on(*names)
        await large.send("/actions/schedule", type="Reboot", vms=" ".join(names), step="send")

        first = await large.see("/events?type=Reboot")
        second = await large.see("/events?type=Reboot&page=2")

    assert len(rows(first)) == 100
    assert 'href="/events?type=Reboot&amp;page=2"' in first
    assert len(rows(second)) == 30
    assert set(rows(first)).isdisjoint(rows(second))


async def test_a_description_is_in_one_line_and_whole_where_one_points_at_it(
    console: ConsoleClient,
) -> None:
    words = "A long story, " * 30
    await console.switch_on("web")
    await console.send(
        "/actions/schedule", type="Reboot", vm="web", description=words.strip(), step="send"
    )

    page = await console.see("/events")

    assert f'<td class="text in-one-line" title="{words.strip()}">' in page


# --- several at once -----------------------------------------------------------------------------


async def test_several_events_are_approved_at_once_and_what_is_refused_is_said(
    console: ConsoleClient,
) -> None:
    ids = await _story(console)
    ticked = [("event", event_id) for event_id in ids.values()]

    answer = await console.send("/events/approve", *ticked)

    assert answer.status_code == 200
    said = outcome(answer.text)
    assert "2 approved, 1 refused." in said
    assert "Refused (1) Redeploy of report : it has already started" in said
    assert "Approved (2) Reboot of web Freeze of db-0" in said
    assert set((await statuses(console)).values()) == {"Started"}
    history = await console.ask(f"/v1/history?event={ids['web']}")
    assert ("approved", "console") in [(row["action"], row["actor"]) for row in history["history"]]


async def test_an_event_that_waits_for_others_is_said_to_wait_and_not_approved_twice(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web", "report")
    work = {"type": "Reboot", "notice": "1h"}
    made = (await console.http.post("/v1/hosts/rack1/maintain", json=work)).json()["events"]
    one = made[0]["event_id"]

    first = outcome((await console.send("/events/approve", event=one)).text)
    again = await console.send("/events/approve", event=one)

    waiting = "waiting for other events: its page says which"
    assert f": it is {waiting}" in first
    assert again.status_code == 400
    assert f"it is already approved, and is {waiting}" in outcome(again.text)


def confirmed(page: str) -> list[tuple[str, str]]:
    """What the form sends that confirms what was shown."""
    form = re.search(r'<form method="post" action="/events/cancel">.*?</form>', page, re.DOTALL)
    assert form is not None
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form[0])
    return [(name, html.unescape(value)) for name, value in found]


async def test_a_reason_that_is_too_long_is_refused_once_for_all_events(
    console: ConsoleClient,
) -> None:
    ids = await _story(console)
    ticked = [("event", event_id) for event_id in ids.values()]

    told = await console.send("/events/cancel", *ticked, reason="x" * 1001)

    assert text_of(told.text).count("a reason of 1001 characters is longer than 1000") == 1
    assert (await statuses(console))["web"] == "Scheduled"


async def test_several_events_are_canceled_once_it_was_told_what_comes_of_it(
    console: ConsoleClient,
) -> None:
    ids = await _story(console)
    ticked = [("event", event_id) for event_id in ids.values()]

    told = await console.send("/events/cancel", *ticked, reason="not <today>")

    assert "2 will be canceled, 1 refused. Nothing has changed yet." in outcome(told.text)
    assert "has started and can no longer be canceled" in outcome(told.text)
    assert "To be canceled (2) Reboot of web Freeze of db-0" in outcome(told.text)
    assert "Cancel 2 events" in outcome(told.text)
    assert (await statuses(console))["web"] == "Scheduled"

    answer = await console.send("/events/cancel", *confirmed(told.text))

    assert "2 canceled, 1 refused." in outcome(answer.text)
    assert await statuses(console) == {"web": "Canceled", "db-0": "Canceled", "report": "Started"}
    page = text_of(await console.see(f"/events/{ids['web']}"))
    assert "It was canceled: not <today>" in page


async def test_canceling_a_part_of_maintenance_tells_of_the_other_parts(
    console: ConsoleClient,
) -> None:
    """Ticked or not, and none is said to be refused because another took it along."""
    await console.switch_on("web", "report")
    work = {"type": "Reboot", "notice": "1h"}
    made = (await console.http.post("/v1/hosts/rack1/maintain", json=work)).json()["events"]
    ticked = [("event", event["event_id"]) for event in made]

    told = await console.send("/events/cancel", ticked[0])
    done = await console.send("/events/cancel", *confirmed(told.text), ticked[1])

    assert "2 will be canceled." in outcome(told.text)
    assert "it is part of the same maintenance" in outcome(told.text)
    assert "2 canceled." in outcome(done.text)
    assert "refused" not in outcome(done.text)


async def test_nothing_is_canceled_that_was_not_shown_before(console: ConsoleClient) -> None:
    ids = await _story(console)
    told = await console.send("/events/cancel", event=ids["web"])

    answer = await console.send("/events/cancel", *confirmed(told.text), ("event", ids["db-0"]))

    assert answer.status_code == 400
    assert "more would be canceled than you were shown" in text_of(answer.text)
    assert "2 will be canceled." in outcome(answer.text)
    assert (await statuses(console))["web"] == "Scheduled"


async def test_what_has_started_since_it_was_shown_keeps_no_other_from_being_canceled(
    console: ConsoleClient,
) -> None:
    ids = await _story(console)
    told = await console.send("/events/cancel", ("event", ids["web"]), ("event", ids["db-0"]))
    await console.send(f"/events/{ids['web']}/approve")

    answer = await console.send("/events/cancel", *confirmed(told.text))

    assert "1 canceled, 1 refused." in outcome(answer.text)
    assert (await statuses(console))["db-0"] == "Canceled"


@pytest.mark.parametrize("path", ["/events/approve", "/events/cancel"])
async def test_where_nothing_is_ticked_nothing_is_done(console: ConsoleClient, path: str) -> None:
    await _story(console)
    before = await statuses(console)

    answer = await console.send(path)

    assert answer.status_code == 400
    assert "choose at least one event" in text_of(answer.text)
    assert await statuses(console) == before


@pytest.mark.parametrize("event", ["nonsense", "00000000-0000-4000-8000-000000000000"])
@pytest.mark.parametrize("path", ["/events/approve", "/events/cancel"])
async def test_an_event_that_does_not_exist_is_refused(
    console: ConsoleClient, path: str, event: str
) -> None:
    answer = await console.send(path, event=event)

    assert answer.status_code == 400
    assert re.search("was not found|not an event id", text_of(answer.text))


async def test_the_list_stays_narrowed_after_something_was_done(console: ConsoleClient) -> None:
    ids = await _story(console)

    answer = await console.send(
        "/events/approve", ("event", ids["web"]), status="Scheduled", type="Freeze"
    )

    assert rows(answer.text) == [ids["db-0"]]
    assert 'data-address="/events?status=Scheduled&amp;type=Freeze"' in answer.text


async def test_only_events_that_wait_have_a_box_to_be_ticked(console: ConsoleClient) -> None:
    ids = await _story(console)

    page = await console.see("/events")

    boxes = re.findall(r'type="checkbox" id="tick-([^"]*)" name="event"', page)
    assert boxes == [ids["web"], ids["db-0"]]


# --- who may -------------------------------------------------------------------------------------


@pytest.fixture
async def guarded(anyio_backend: object) -> AsyncIterator[ConsoleClient]:
    async with console_client(access="token") as console:
        yield console


@pytest.mark.parametrize("path", ["/events/approve", "/events/cancel"])
async def test_a_page_of_another_site_can_do_nothing_to_several(
    console: ConsoleClient, path: str
) -> None:
    """S13"""
    ids = await _story(console)
    before = await statuses(console)

    answer = await console.http.post(
        path,
        content=f"event={ids['web']}&shown={ids['web']}",
        headers={"Origin": "http://evil.example"},
    )

    assert answer.status_code == 403
    assert await statuses(console) == before


@pytest.mark.parametrize(
    ("role", "shown"),
    [
        (Role.READER, []),
        (Role.APPROVER, ["/events/approve"]),
        (Role.MAINTAINER, ["/events/approve", "/events/cancel"]),
    ],
)
async def test_a_list_offers_what_the_role_may_do(
    guarded: ConsoleClient, role: Role, shown: list[str]
) -> None:
    """S13"""
    await guarded.send("/sign-in", token=token_of(role))

    page = await guarded.see("/events")

    assert re.findall(r'formaction="([^"]*)"', page) == shown
    for path in ("/events/approve", "/events/cancel"):
        answer = await guarded.send(path, event="00000000-0000-4000-8000-000000000000")
        assert (answer.status_code == 403) == (path not in shown)
