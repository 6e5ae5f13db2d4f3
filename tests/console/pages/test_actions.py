"""Forms that cause something: told beforehand, sent, refused beside the field."""

import html
import re

import pytest

from tests.console.console_client import ConsoleClient, console_client, fingerprint, text_of


async def test_a_preview_tells_what_will_happen_and_nothing_has_happened(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web")

    answer = await console.send("/actions/restart", vm="web", step="preview")

    told = text_of(answer.text)
    assert answer.status_code == 200
    assert "Reboot web in vm/web" in told
    assert "(in 15m) if none does" in told
    assert await console.events() == []
    assert (await console.ask("/v1/history?vm=web&type=Reboot"))["history"] == []


async def test_what_a_preview_tells_is_what_happens(console: ConsoleClient) -> None:
    await console.switch_on("web")
    answer = await console.send("/actions/schedule", type="Redeploy", vm="web", step="preview")

    sent = await console.send("/actions/schedule", type="Redeploy", vm="web", step="send")

    [event] = await console.events()
    assert sent.status_code == 303
    assert sent.headers["Location"] == f"/events/{event['event_id']}?done=sent"
    assert event["not_before"].replace("T", " ").replace("Z", " UTC") in text_of(answer.text)


async def test_a_preview_says_that_nobody_reads_so_nobody_is_told(console: ConsoleClient) -> None:
    answer = await console.send("/actions/restart", vm="report", step="preview")

    assert "without notice: no VM reads this scope" in text_of(answer.text)


async def test_a_form_schedules_for_each_scope_of_the_vms_chosen(console: ConsoleClient) -> None:
    await console.switch_on("web", "report")

    sent = await console.send(
        "/actions/schedule",
        ("vm", "web"),
        type="Freeze",
        vms="REPORT, web",
        notice="20m",
        duration="9s",
        description="as told",
        step="send",
    )

    events = await console.events()
    assert sent.headers["Location"] == "/?done=sent"
    assert [event["resources"] for event in events] == [["web"], ["report"]]
    assert {event["description"] for event in events} == {"as told"}
    assert {event["source"] for event in events} == {"Platform"}


@pytest.mark.parametrize(
    ("action", "fields", "field", "words"),
    [
        ("schedule", {"type": "Reboot"}, "vms", "choose at least one VM"),
        ("schedule", {"type": "Reboot", "vms": "nobody"}, "vms", "no VM is named 'nobody'"),
        ("schedule", {"type": "Nap", "vms": "web"}, "type", "'Nap' is not one of"),
        ("schedule", {"type": "Preempt", "vms": "web"}, "vms", "is not a Spot VM"),
        ("schedule", {"type": "Reboot", "vms": "web", "notice": "soon"}, "notice", "'soon'"),
        ("schedule", {"type": "Reboot", "vms": "web", "notice": "1m"}, "notice", "minimum of 15m"),
        ("schedule", {"type": "Reboot", "vms": "web", "duration": "x"}, "duration", "'x'"),
        ("schedule", {"type": "Reboot", "vms": "db-0 db-1"}, "vms", "update domains 0, 1"),
        ("evict", {"vms": "web"}, "vms", "is not a Spot VM"),
        ("fail-host", {}, "host", "choose a host"),
        ("fail-host", {"host": "nowhere"}, "host", "named 'nowhere'"),
        ("maintain-set", {"type": "Freeze"}, "scope", "choose a set"),
        ("maintain-set", {"type": "Freeze", "scope": "avset/x"}, "scope", "no scope is named"),
        ("maintain-host", {"type": "Terminate", "host": "rack1"}, "type", "not a Terminate"),
        ("scale", {"capacity": "2"}, "set", "choose a scale set"),
        ("scale", {"set": "x", "capacity": "2"}, "set", "is not a resource id"),
    ],
)
async def test_a_refusal_stands_beside_its_field_and_what_was_typed_is_kept(
    console: ConsoleClient, action: str, fields: dict[str, str], field: str, words: str
) -> None:
    await console.switch_on("web")

    answer = await console.send(f"/actions/{action}", step="send", **fields)

    assert answer.status_code == 400
    problem = re.search(rf'id="problem-{field}"[^>]*>([^<]*)<', answer.text)
    assert problem is not None, answer.text
    assert words in html.unescape(problem[1])
    for typed in ("notice", "duration", "host"):
        if typed in fields:
            assert f'name="{typed}"' in answer.text
            assert f'value="{fields[typed]}"' in answer.text
    assert await console.events() == []


async def test_a_preview_of_a_hosts_maintenance_tells_that_its_events_wait_for_each_other(
    console: ConsoleClient,
) -> None:
    """I16: also that of a scope whose document no VM reads."""
    await console.switch_on("web")

    preview = await console.send(
        "/actions/maintain-host", host="rack1", type="Freeze", step="preview"
    )

    told = text_of(preview.text)
    together = "together with 1 other event of this maintenance, when each of them is approved"
    assert f"The VMs of its scope see it now. It starts {together}" in told
    assert f"No VM reads this scope's document, so none sees it. It starts {together}" in told
    assert "when one of them approves it" not in told


async def test_hosts_fail_and_sets_are_maintained_by_form(console: ConsoleClient) -> None:
    await console.switch_on("web", "db-0")

    failed = await console.confirm("/actions/fail-host", host="rack1")
    maintained = await console.send(
        "/actions/maintain-set", scope="avset/db", type="Freeze", step="send"
    )

    events = await console.events()
    assert {failed.status_code, maintained.status_code} == {303}
    assert {(event["type"], event["status"]) for event in events} >= {
        ("Redeploy", "Started"),
        ("Freeze", "Scheduled"),
    }


async def test_a_notice_that_is_too_short_is_answered_in_the_words_of_the_form(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web")

    refused = await console.send(
        "/actions/schedule", type="Reboot", vm="web", notice="1m", step="send"
    )

    told = text_of(refused.text)
    assert "an emulator allows it if you ask for short notice" in told
    assert "Short notice: allow less than the minimum" in told


async def test_a_deleted_instance_gets_the_notice_of_its_model(console: ConsoleClient) -> None:
    await console.switch_on("api_0")

    await console.confirm("/actions/delete", vm="api_1")

    [event] = await console.events()
    assert (event["type"], event["resources"]) == ("Terminate", ["api_1"])


@pytest.mark.parametrize(
    ("action", "fields"), [("delete", {"vm": "web"}), ("fail-host", {"host": "rack1"})]
)
async def test_what_cannot_be_undone_wants_to_be_looked_at_first(
    console: ConsoleClient, action: str, fields: dict[str, str]
) -> None:
    await console.switch_on("web")
    form = await console.see(f"/actions/{action}")

    unseen = await console.send(f"/actions/{action}", step="send", **fields)

    assert 'value="send"' not in form
    assert "What will happen" in unseen.text
    assert 'value="send"' in unseen.text
    assert await console.events() == []
    await console.see("/vms/web")

    sent = await console.send(
        f"/actions/{action}", step="send", shown=fingerprint(unseen), **fields
    )

    assert sent.status_code == 303
    assert "web" in str(await console.ask("/v1/events?status=all"))


async def test_a_form_that_was_changed_after_it_was_looked_at_is_shown_again(
    console: ConsoleClient,
) -> None:
    shown = fingerprint(await console.send("/actions/delete", vm="web", step="preview"))

    other = await console.send("/actions/delete", vm="report", step="send", shown=shown)

    assert other.status_code == 400
    assert "Nothing was done" in text_of(other.text)
    assert "Terminate report in vm/report" in text_of(other.text)
    await console.see("/vms/report")
    await console.see("/vms/web")


async def test_what_has_become_of_a_host_since_it_was_looked_at_is_shown_again(
    console: ConsoleClient,
) -> None:
    shown = fingerprint(await console.send("/actions/fail-host", host="rack1", step="preview"))
    late = {"vms": [{"name": "late", "address": "10.0.0.9", "host": "rack1"}]}
    assert (await console.http.put("/v1/fleet", json=late)).is_success

    stale = await console.send("/actions/fail-host", host="rack1", step="send", shown=shown)

    assert stale.status_code == 400
    assert "the outcome has changed since the preview" in text_of(stale.text)
    assert "late in vm/late" in text_of(stale.text)
    assert (await console.ask("/v1/events?status=all"))["events"] == []


async def test_vms_may_be_ticked_or_typed_between_looking_and_confirming(
    console: ConsoleClient,
) -> None:
    looked = await console.http.get("/actions/delete?vm=web&step=preview")

    sent = await console.send(
        "/actions/delete", vms=" WEB ", step="send", shown=fingerprint(looked)
    )

    assert looked.status_code == 200
    assert "Terminate web in vm/web" in text_of(looked.text)
    assert sent.status_code == 303


async def test_an_address_that_tries_a_form_out_changes_nothing_and_says_what_is_wrong(
    console: ConsoleClient,
) -> None:
    page = await console.see("/actions/fail-host?host=nowhere&step=preview", 400)

    assert "no VM runs on a host named" in text_of(page)
    assert await console.events() == []


async def test_a_form_for_a_large_fleet_holds_no_list_of_its_vms_sets_or_hosts() -> None:
    fleet = {
        "vms": [{"name": f"shop-{number}", "host": f"h-{number}"} for number in range(300)],
        "availability_sets": [{"name": f"db-{n}", "vms": [f"db-{n}-a"]} for n in range(50)],
    }
    async with console_client(fleet=fleet) as console:
        for action, what in (("restart", "vms"), ("maintain-set", "sets"), ("fail-host", "hosts")):
            page = await console.see(f"/actions/{action}")

            assert f'data-suggest="{what}"' in page
            assert "<option" not in page.partition('id="scope"')[2].partition("</div>")[0]
            assert "shop-7" not in page
            assert "h-7" not in page
            assert "avset/db-7" not in page


async def test_a_form_may_come_filled_in(console: ConsoleClient) -> None:
    page = await console.see("/actions/restart?vm=web")

    assert re.search(r'value="web" checked', page)


async def test_no_name_that_an_address_gives_is_lost(console: ConsoleClient) -> None:
    page = await console.see("/actions/restart?vm=WEB&vm=nobody&vms=db-0")

    assert 'value="web" checked' in page
    assert ">db-0 nobody</textarea>" in page


async def test_a_form_that_is_no_form_is_refused(console: ConsoleClient) -> None:
    answer = await console.http.post("/actions/restart", content=b"\xff\xfe")
    large = await console.http.post("/actions/restart", content=b"vm=" + b"x" * 300_000)

    assert answer.status_code == 400
    assert large.status_code == 400
    assert "larger than 256 KiB" in large.text


async def test_short_notice_is_not_offered_in_service() -> None:
    async with console_client(mode="service") as console:
        page = await console.see("/actions/schedule")

        assert "short_notice" not in page


async def test_where_nothing_is_yet_a_form_says_what_to_do_first() -> None:
    async with console_client(fleet={}) as console:
        for key, lacks in (
            ("restart", "There are no VMs yet"),
            ("fail-host", "There are no VMs yet"),
            ("maintain-set", "There are no sets of VMs yet"),
            ("scale", "There are no scale sets yet"),
        ):
            page = await console.see(f"/actions/{key}")

            assert lacks in text_of(page)
            assert 'href="/sets/new"' in page
        for path in ("/", "/fleet", "/actions/restart"):
            page = text_of(await console.see(path))

            assert "forewarned fleet apply fleet.toml" in page
            assert '[[vms]] name = "web"' in page
