"""An event's page: every field, what its VMs read, approving and calling off."""

import re

import pytest

from tests.console.console_client import ConsoleClient, console_client, fingerprint, text_of

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "\u202etxt.exe",
    "{{ 7 * 7 }} {% raw %}",
    "x" * 200,
]


async def _reboot(console: ConsoleClient, **fields: str) -> str:
    await console.switch_on("web")
    await console.send("/actions/schedule", type="Reboot", vm="web", step="send", **fields)
    [event] = await console.events()
    return str(event["event_id"])


async def test_an_event_is_approved_and_gone(console: ConsoleClient) -> None:
    event_id = await _reboot(console)
    before = text_of(await console.see(f"/events/{event_id}"))

    approved = await console.send(f"/events/{event_id}/approve")

    after = text_of(await console.see(f"/events/{event_id}"))
    assert approved.status_code == 303
    assert "It has not been approved yet" in before
    assert "Who may approve web" in before
    assert "console approved it" in after
    assert "Started" in after


async def test_a_hosts_maintenance_links_the_events_it_starts_together_with(
    console: ConsoleClient,
) -> None:
    """I16."""
    await console.switch_on("web", "report")
    await console.send("/actions/maintain-host", host="rack1", type="Freeze", step="send")
    ready, other = await console.events()
    await console.send(f"/events/{ready['event_id']}/approve")

    page = await console.see(f"/events/{ready['event_id']}")
    last = await console.see(f"/events/{other['event_id']}")

    [name] = other["resources"]
    assert f'<a href="/events/{other["event_id"]}">' in page
    assert f"Scheduled not approved {other['scope']} {name}" in text_of(page)
    assert f"Scheduled approved {ready['scope']}" in text_of(last)
    assert "starts together with the other event below" in text_of(last)
    assert "Approved by console, but a host's maintenance begins when every scope" in text_of(page)


async def test_an_event_is_called_off_with_its_reason(console: ConsoleClient) -> None:
    event_id = await _reboot(console)

    await console.confirm(f"/events/{event_id}/cancel", reason="not <today>")

    page = await console.see(f"/events/{event_id}")
    assert "It was canceled: not <today>" in text_of(page)
    assert "not &lt;today&gt;" in page
    assert "It is no longer in any document" in text_of(page)


async def test_a_reason_that_is_too_long_is_shown_beside_its_field(console: ConsoleClient) -> None:
    event_id = await _reboot(console)

    answer = await console.send(f"/events/{event_id}/cancel", reason="x" * 1001)

    assert answer.status_code == 400
    assert "a reason of 1001 characters is longer than 1000" in text_of(answer.text)
    assert [event["status"] for event in await console.events()] == ["Scheduled"]


async def _maintain_rack1(console: ConsoleClient) -> dict[str, str]:
    """The events of a host's maintenance, by scope."""
    await console.switch_on("web", "report")
    await console.send("/actions/maintain-host", host="rack1", type="Freeze", step="send")
    return {event["scope"]: event["event_id"] for event in await console.events()}


async def test_canceling_wants_to_be_looked_at_first(console: ConsoleClient) -> None:
    event_id = await _reboot(console)
    page = await console.see(f"/events/{event_id}")
    looked = await console.see(f"/events/{event_id}/cancel")

    unseen = await console.send(f"/events/{event_id}/cancel", reason="not today")

    assert f'href="/events/{event_id}/cancel"' in page
    assert "Reboot web in vm/web It is canceled at once" in text_of(looked)
    assert unseen.status_code == 200
    assert 'value="not today"' in unseen.text
    assert [event["status"] for event in await console.events()] == ["Scheduled"]


async def test_canceling_tells_of_everything_that_is_canceled_with_it(
    console: ConsoleClient,
) -> None:
    events = await _maintain_rack1(console)

    told = text_of(await console.see(f"/events/{events['vm/web']}/cancel"))
    await console.confirm(f"/events/{events['vm/web']}/cancel", reason="")

    assert "Freeze web in vm/web Freeze report in vm/report For each: it is canceled" in told
    assert "canceled as a whole" in told
    assert await console.events() == []


async def test_canceling_one_turn_of_a_set_tells_that_the_others_never_come(
    console: ConsoleClient,
) -> None:
    await console.switch_on("db-0")
    await console.send("/actions/maintain-set", scope="avset/db", type="Freeze", step="send")
    [event] = await console.events()

    told = text_of(await console.see(f"/events/{event['event_id']}/cancel"))

    assert "update domain 1 will not be maintained" in told


async def test_canceling_what_would_now_be_another_thing_is_shown_again(
    console: ConsoleClient,
) -> None:
    events = await _maintain_rack1(console)
    path = f"/events/{events['vm/web']}/cancel"
    shown = fingerprint(await console.http.get(path))
    late = {"vms": [{"name": "web", "address": "10.0.0.1", "host": "rack1"}]}
    assert (await console.http.put("/v1/fleet?prune=true", json=late)).is_success

    stale = await console.send(path, reason="", shown=shown)

    assert stale.status_code == 400
    assert "Nothing was canceled" in text_of(stale.text)
    assert [event["scope"] for event in await console.events()] == ["vm/web"]


async def test_the_head_of_an_event_tells_its_update_domain_host_and_siblings(
    console: ConsoleClient,
) -> None:
    events = await _maintain_rack1(console)
    await console.send(f"/events/{events['vm/report']}/approve")

    page = await console.see(f"/events/{events['vm/web']}")

    head = page.partition("Every field")[0]
    assert "Scope vm/web Update domain 0 Host rack1" in text_of(head)
    assert "The same maintenance 1 other event" in text_of(head)
    assert "Scheduled approved vm/report report" in text_of(head)
    assert f'href="/events/{events["vm/report"]}"' in head
    assert 'href="/hosts/rack1"' in head


async def test_of_very_many_siblings_those_that_hold_the_others_back_are_told() -> None:
    vms = [{"name": f"web-{n}", "host": "rack1"} for n in range(60)]
    async with console_client(fleet={"vms": vms}) as console:
        await console.switch_on(*(vm["name"] for vm in vms))
        await console.send("/actions/maintain-host", host="rack1", type="Freeze", step="send")
        first, *others = await console.events()
        chosen = [("event", str(event["event_id"])) for event in others]
        await console.send("/events/approve", *chosen)

        page = await console.see(f"/events/{others[-1]['event_id']}")

    assert "50+ other events, 1 not approved" in text_of(page)
    assert f'href="/events/{first["event_id"]}"' in page.partition("more-siblings")[0]


async def test_siblings_that_are_over_are_told_too(console: ConsoleClient) -> None:
    events = await _maintain_rack1(console)
    for event_id in events.values():
        await console.send(f"/events/{event_id}/approve")
    await console.send(f"/events/{events['vm/report']}/complete")

    page = text_of(await console.see(f"/events/{events['vm/web']}"))

    assert "Completed vm/report report Update domain 0" in page


async def test_the_turns_of_a_set_are_told_with_the_update_domain(console: ConsoleClient) -> None:
    await console.switch_on("db-0")
    await console.send("/actions/maintain-set", scope="avset/db", type="Freeze", step="send")
    [event] = await console.events()

    page = text_of(await console.see(f"/events/{event['event_id']}"))

    assert "Update domain 0 then 1" in page


async def test_an_event_without_maintenance_has_no_siblings(console: ConsoleClient) -> None:
    page = await console.see(f"/events/{await _reboot(console)}")

    assert "The same maintenance" not in page


async def test_an_event_tells_why_it_started_in_words(console: ConsoleClient) -> None:
    event_id = await _reboot(console)
    waiting = text_of(await console.see(f"/events/{event_id}"))
    await console.send(f"/events/{event_id}/approve")

    started = text_of(await console.see(f"/events/{event_id}"))

    assert "Started not yet" in waiting
    assert "UTC , approved by console" in started
    assert "by approved" not in started


async def test_a_canceled_event_never_started(console: ConsoleClient) -> None:
    event_id = await _reboot(console)
    await console.confirm(f"/events/{event_id}/cancel", reason="")

    page = text_of(await console.see(f"/events/{event_id}"))

    assert "Started never: it was canceled first" in page
    assert "Started not yet" not in page


async def test_what_cannot_be_done_is_said_on_the_page(console: ConsoleClient) -> None:
    event_id = await _reboot(console)
    await console.send(f"/events/{event_id}/approve")

    answer = await console.send(f"/events/{event_id}/cancel", reason="")

    assert "has started and can no longer be canceled" in text_of(answer.text)


async def test_each_api_version_shows_the_event_as_its_vms_read_it(console: ConsoleClient) -> None:
    event_id = await _reboot(console, duration="9s")

    page = text_of(await console.see(f"/events/{event_id}"))

    assert '"DurationInSeconds": 9' in page
    assert "api-version 2017-03-01" in page
    assert '"_web"' in page
    assert page.index("2020-07-01") < page.index("api-version 2017-03-01")


@pytest.mark.parametrize("text", HOSTILE)
async def test_what_people_write_is_shown_as_text(console: ConsoleClient, text: str) -> None:
    event_id = await _reboot(console, description=text)

    for path in ("/", f"/events/{event_id}", "/vms/web", "/history"):
        page = await console.see(path)

        assert not re.search(r"<script>|<img", page)
    assert text in text_of(await console.see(f"/events/{event_id}"))


@pytest.mark.parametrize("text", HOSTILE)
async def test_what_people_ask_for_is_shown_as_text(console: ConsoleClient, text: str) -> None:
    for path in (f"/fleet?find={text}", f"/history?vm={text}&type={text}"):
        answer = await console.http.get(path)

        assert not re.search(r"<script>|<img", answer.text)


async def test_what_vms_read_of_an_event_is_not_more_than_they_were_told(
    console: ConsoleClient,
) -> None:
    await console.send("/actions/restart", vm="web", step="send")
    [unannounced] = (await console.ask("/v1/events?status=all"))["events"]
    await console.switch_on("db-0")
    await console.send("/actions/restart", vm="db-0", step="send")
    [one] = [event for event in await console.events() if event["scope"] == "avset/db"]
    alone = await console.see(f"/events/{one['event_id']}")
    await console.send("/actions/restart", vm="db-1", step="send")

    among_others = await console.see(f"/events/{one['event_id']}")
    silent = await console.see(f"/events/{unannounced['event_id']}")

    assert "Only this event is shown" not in alone
    assert "Only this event is shown" in among_others
    assert "an event without notice appears in no document" in text_of(silent)
    assert "how its VMs know" not in silent
