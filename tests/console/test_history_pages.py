"""History: filtered, paged, taken away as a file."""

import csv
import io

from tests.console.looking import Looking, looking, text_of


async def test_history_is_filtered_by_vm_type_and_actor(console: Looking) -> None:
    await console.switch_on("web")
    await console.send("/do/restart", vm="web", step="send")

    by_type = text_of(await console.see("/history?type=Reboot"))
    by_actor = text_of(await console.see("/history?actor=vm:web"))
    by_vm = text_of(await console.see("/history?vm=report"))

    assert "scheduled console" in by_type
    assert "activated" not in by_type
    assert "activated vm:web" in by_actor
    assert "scheduled" not in by_vm


async def test_a_scope_leads_to_its_own_history_which_stays_its_own(console: Looking) -> None:
    scope = await console.see("/scopes/avset/db")
    page = await console.see("/history?scope=avset%2Fdb")
    searched = await console.see("/history?vm=db-0&scope=avset/db")

    assert 'href="/history?scope=avset%2Fdb"' in scope
    assert 'href="/?scope=avset%2Fdb"' in scope
    assert "vm/web" not in page
    assert 'name="scope" value="avset/db"' in page
    assert searched.count("resource added") == 1


async def test_exports_hold_the_same_rows(console: Looking) -> None:
    await console.switch_on("web")
    await console.send("/do/schedule", type="Freeze", vm="web", step="send")

    rows = await console.ask("/history.json?vm=web")
    answer = await console.http.get("/history.csv?vm=web")

    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert "attachment" in answer.headers["Content-Disposition"]
    assert [line["action"] for line in lines] == [row["action"] for row in rows]
    assert rows[0]["action"] == "scheduled"
    assert lines[0]["resources"] == "web"


async def test_no_cell_is_a_formula(console: Looking) -> None:
    await console.switch_on("web")
    await console.send("/do/restart", vm="web", step="send")
    [event] = await console.events()
    await console.send(f"/events/{event['event_id']}/cancel", reason='=HYPERLINK("x")')

    answer = await console.http.get("/history.csv")

    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert lines[0]["cause"] == '\'=HYPERLINK("x")'


async def test_long_histories_are_paged() -> None:
    fleet = {"vms": [{"name": f"vm-{number:03}"} for number in range(150)]}
    async with looking(fleet=fleet) as console:
        first = await console.see("/history")
        older = first.partition("before=")[2].partition('"')[0]
        second = await console.see(f"/history?before={older}")

        assert first.count("<tr>") == 101
        assert second.count("<tr>") == 51
        assert "Older" not in second


async def test_a_filter_that_is_none_is_refused_beside_it(console: Looking) -> None:
    page = await console.see("/history?type=Nap")
    wrong = await console.see("/history?before=x")

    assert 'id="problem-type"' in page
    assert "expected a whole number" in wrong
