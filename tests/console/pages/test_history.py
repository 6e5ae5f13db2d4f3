"""History: filtered, paged, taken away as a file."""

import csv
import html
import io
import json
import re
from typing import Any

import pytest

from tests.console.console_client import ConsoleClient, console_client, text_of


async def exported(console: ConsoleClient, query: str = "") -> list[Any]:  # JSON
    answer = await console.http.get(f"/history.jsonl?{query}")
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_history_is_filtered_by_vm_type_and_actor(console: ConsoleClient) -> None:
    await console.switch_on("web")
    await console.send("/actions/restart", vm="web", step="send")

    by_type = text_of(await console.see("/history?type=Reboot"))
    by_actor = text_of(await console.see("/history?actor=vm:web"))
    by_vm = text_of(await console.see("/history?vm=report"))

    assert "scheduled console" in by_type
    assert "activated vm:web" not in by_type
    assert "activated vm:web" in by_actor
    assert "scheduled console" not in by_vm


async def test_a_scope_leads_to_its_own_history_which_stays_its_own(console: ConsoleClient) -> None:
    scope = await console.see("/scopes/avset/db")
    page = await console.see("/history?scope=avset%2Fdb")
    searched = await console.see("/history?vm=db-0&scope=avset/db")

    assert 'href="/history?scope=avset%2Fdb"' in scope
    assert 'href="/?scope=avset%2Fdb"' in scope
    assert "vm/web" not in page
    assert 'name="scope" value="avset/db"' in page
    assert searched.count("<td>resource added</td>") == 1


async def test_exports_hold_the_same_rows(console: ConsoleClient) -> None:
    await console.switch_on("web")
    await console.send("/actions/schedule", type="Freeze", vm="web", step="send")

    rows = await exported(console, "vm=web")
    answer = await console.http.get("/history.csv?vm=web")

    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert "attachment" in answer.headers["Content-Disposition"]
    assert [line["action"] for line in lines] == [row["action"] for row in rows]
    assert rows[-1]["action"] == "scheduled"
    assert lines[-1]["resources"] == "web"


async def test_no_cell_is_a_formula(console: ConsoleClient) -> None:
    await console.switch_on("web")
    await console.send("/actions/restart", vm="web", step="send")
    [event] = await console.events()
    await console.confirm(f"/events/{event['event_id']}/cancel", reason='=HYPERLINK("x")')

    answer = await console.http.get("/history.csv")

    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert lines[-1]["cause"] == '\'=HYPERLINK("x")'


async def test_a_start_is_told_in_words_and_reasons_as_they_were_typed(
    console: ConsoleClient,
) -> None:
    await console.send("/actions/restart", vm="report", step="send")
    await console.switch_on("web")
    await console.send("/actions/restart", vm="web", step="send")
    event = next(each for each in await console.events() if each["resources"] == ["web"])
    await console.confirm(f"/events/{event['event_id']}/cancel", reason="web_0 not_before noon")

    page = text_of((await console.http.get("/history")).text)

    assert "started" in page
    assert "without notice" in page
    assert "web_0 not_before noon" in page


async def test_files_are_those_of_the_control_api_with_all_rows() -> None:
    fleet = {"vms": [{"name": f"vm-{number:05}"} for number in range(2_100)]}
    async with console_client(fleet=fleet) as console:
        for suffix in ("csv", "jsonl"):
            of_console = await console.http.get(f"/history.{suffix}")
            of_api = await console.http.get(f"/v1/history/export?format={suffix}")

            assert of_console.text.count("vm/vm-") == 2_100
            assert of_console.content == of_api.content


async def test_long_histories_are_paged() -> None:
    fleet = {"vms": [{"name": f"vm-{number:03}"} for number in range(150)]}
    async with console_client(fleet=fleet) as console:
        first = await console.see("/history")
        older = first.partition("before=")[2].partition('"')[0]
        second = await console.see(f"/history?before={older}")

        assert first.count("<tr>") == 101
        assert second.count("<tr>") == 51
        assert "Older" not in second


async def test_history_is_filtered_by_event_and_by_what_was_done(console: ConsoleClient) -> None:
    await console.switch_on("web", "report")
    await console.send("/actions/schedule", type="Freeze", vms="web report", step="send")
    one, other = [event["event_id"] for event in await console.events()]
    await console.send(f"/events/{one}/approve")

    of_event = await exported(console, f"event={one.lower()}")
    done = await exported(console, "action=approved")
    page = await console.see(f"/history?event={one}&action=scheduled")

    assert {row["event_id"] for row in of_event} == {one}
    assert [(row["action"], row["event_id"]) for row in done] == [("approved", one)]
    assert page.count('<a href="/events/') == 1
    assert '<option value="scheduled" selected>' in page
    assert other not in page


async def test_what_happened_is_told_and_offered_in_words(console: ConsoleClient) -> None:
    await console.switch_on("web")
    await console.send("/actions/restart", vm="web", step="send")
    [event] = await console.events()
    await console.send(f"/events/{event['event_id']}/approve")

    page = await console.see("/history?action=interrupted")

    assert page.count("<td>impact began</td>") == 1
    assert '<option value="interrupted" selected>impact began</option>' in page
    assert '<option value="resource_added">resource added</option>' in page


async def test_history_is_filtered_by_date_up_to_and_with_the_last_minute_or_day(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web")
    for _ in range(4):
        await console.send("/actions/schedule", type="Freeze", vm="web", notice="1d", step="send")
        await console.send("/clock/step")

    for query, found in (
        ("from=2026-01-05T12:02", [2, 3]),
        ("to=2026-01-05T12:01", [0, 1]),
        ("from=2026-01-05 12:01&to=2026-01-05 12:02:00", [1, 2]),
        ("from=2026-01-05T13:02%2B01:00&to=2026-01-05T12:02:00Z", [2]),
        ("from=2026-01-05&to=2026-01-05", [0, 1, 2, 3]),
        ("from=2026-01-06", []),
        ("to=2026-01-04", []),
    ):
        rows = await exported(console, f"action=scheduled&{query}")

        assert [int(row["at"][14:16]) for row in rows] == found, query


async def test_filters_stay_in_the_address_and_in_their_fields(console: ConsoleClient) -> None:
    page = await console.see("/history?vm=web&from=2026-01-05&to=2026-01-05&action=resource_added")

    assert "vm=web&amp;action=resource_added&amp;from=2026-01-05&amp;to=2026-01-05" in page
    assert 'name="from" type="datetime-local" step="1" value="2026-01-05T00:00:00"' in page
    assert 'name="to" type="datetime-local" step="1" value="2026-01-05T23:59:59"' in page
    assert "Filters (4)" in page


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("from=yesterday", "from", "is not a date or a time such as"),
        ("to=9999-12-31", "to", "is not a date or a time such as"),
        ("to=9999-12-31T23:00-05:00", "to", "is not a date or a time such as"),
        ("from=0001-01-01T00:00%2B05:00", "from", "is not a date or a time such as"),
        ("event=1", "event", "1"),
    ],
)
async def test_a_date_or_an_event_that_is_none_is_refused_beside_it(
    console: ConsoleClient, query: str, field: str, words: str
) -> None:
    page = await console.see(f"/history?{query}", 400)

    problem = re.search(rf'id="problem-{field}"[^>]*>([^<]*)<', page)
    assert problem is not None
    assert words in html.unescape(problem[1])
    assert '<details class="fold filters" open>' in page


async def test_a_filter_that_is_none_is_refused_beside_it(console: ConsoleClient) -> None:
    page = await console.see("/history?type=Nap", 400)
    wrong = await console.see("/history?before=x", 400)

    assert 'id="problem-type"' in page
    assert "expected a whole number" in wrong
