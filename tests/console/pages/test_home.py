"""The first page: what wants attention, the next event to start, and where counts lead."""

import re
from datetime import timedelta

from tests.builders import HOUR, MINUTE
from tests.console.console_client import ConsoleClient, console_client, text_of


async def _schedule(console: ConsoleClient, type_: str, *names: str, **fields: str) -> None:
    await console.switch_on(*names)
    await console.send("/actions/schedule", type=type_, vms=" ".join(names), step="send", **fields)


async def _advance(console: ConsoleClient, span: timedelta) -> None:
    answer = await console.http.post("/v1/clock/step", json={"by": f"{span.seconds}s"})
    assert answer.is_success, answer.text


def tile(page: str, key: str) -> tuple[str, str]:
    """What it says, and where it leads."""
    found = re.search(rf'<a id="tile-{key}"[^>]*href="([^"]*)"[^>]*>(.*?)</a>', page, re.DOTALL)
    assert found is not None, key
    return text_of(found[2]), found[1]


async def test_each_count_of_the_strip_leads_to_what_it_counts(console: ConsoleClient) -> None:
    await _schedule(console, "Reboot", "web", notice="15m")
    await _schedule(console, "Freeze", "db-0", notice="2h")
    await console.http.post("/v1/hosts/rack1/maintain", json={"type": "Freeze", "notice": "3h"})
    await console.switch_on("report")

    page = await console.see("/")

    assert tile(page, "soon") == ("1 starting within 15 minutes", "/events?status=soon")
    assert tile(page, "held")[0] == "0 approved, but held"
    assert tile(page, "overdue")[0] == "0 overdue"
    assert tile(page, "unread") == ("2 scopes that no VM reads", "/unread")
    assert tile(page, "hosts")[1] == "/hosts?affected=on"
    assert "Reboot of web" not in text_of(await console.see("/events?status=held"))
    for key, words in [("soon", "web"), ("unread", "vmss/api/0"), ("hosts", "rack1")]:
        assert words in text_of(await console.see(tile(page, key)[1].partition("#")[0]))


async def test_an_event_that_is_approved_and_waits_is_held(console: ConsoleClient) -> None:
    await console.switch_on("web", "report")
    work = {"type": "Reboot", "notice": "1h"}
    made = (await console.http.post("/v1/hosts/rack1/maintain", json=work)).json()["events"]
    await console.send(f"/events/{made[0]['event_id']}/approve")

    page = await console.see("/")

    assert tile(page, "held")[0] == "1 approved, but held"
    listed = await console.see("/events?status=held")
    assert listed.count('<tr id="row-') == 1
    assert f'id="row-{made[0]["event_id"]}"' in listed


async def test_work_that_should_have_been_over_is_counted() -> None:
    """In service, where an operator says when it is done."""
    async with console_client(mode="service") as console:
        await _schedule(console, "Reboot", "web", duration="10m")
        [event] = await console.events()
        await console.send(f"/events/{event['event_id']}/approve")
        before = tile(await console.see("/"), "overdue")
        await _advance(console, HOUR)

        page = await console.see("/")

    assert before[0] == "0 overdue"
    assert tile(page, "overdue") == ("1 overdue", "/events?status=overdue")


async def test_the_next_event_to_start_is_named_with_how_long_it_takes(
    console: ConsoleClient,
) -> None:
    await _schedule(console, "Freeze", "db-0", notice="2h")
    await _schedule(console, "Reboot", "web", notice="15m")
    await _advance(console, 5 * MINUTE)

    page = await console.see("/")

    named = re.search(r'<a id="next-event"[^>]*>(.*?)</a>', page, re.DOTALL)
    assert named is not None
    assert text_of(named[1]) == "Next to start Reboot of web in 10m"
    assert page.index('id="lane-vm/web"') < page.index('id="lane-avset/db"')


async def test_where_nothing_waits_nothing_is_next(console: ConsoleClient) -> None:
    page = await console.see("/")

    assert 'id="next-event"' not in page
    assert tile(page, "soon")[0] == "0 starting within 15 minutes"


async def test_the_now_line_is_drawn_before_the_lanes_and_so_behind_their_words(
    console: ConsoleClient,
) -> None:
    await _schedule(console, "Reboot", "web")

    page = await console.see("/")

    assert page.index('id="now-line"') < page.index('class="lane')
