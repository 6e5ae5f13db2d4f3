"""An event's page: every field, what its VMs read, approving and calling off."""

import re

import pytest

from tests.console.looking import Looking, text_of

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "\u202etxt.exe",
    "{{ 7 * 7 }} {% raw %}",
    "x" * 200,
]


async def _reboot(console: Looking, **fields: str) -> str:
    await console.switch_on("web")
    await console.send("/do/schedule", type="Reboot", vm="web", step="send", **fields)
    [event] = await console.events()
    return str(event["event_id"])


async def test_an_event_is_approved_and_gone(console: Looking) -> None:
    event_id = await _reboot(console)
    before = text_of(await console.see(f"/events/{event_id}"))

    approved = await console.send(f"/events/{event_id}/approve")

    after = text_of(await console.see(f"/events/{event_id}"))
    assert approved.status_code == 303
    assert "Nobody has approved it yet" in before
    assert "May approve web" in before
    assert "console approved it" in after
    assert "Started" in after


async def test_a_hosts_maintenance_links_the_events_it_starts_together_with(
    console: Looking,
) -> None:
    """I16."""
    await console.switch_on("web", "report")
    await console.send("/do/maintain-host", host="rack1", type="Freeze", step="send")
    ready, other = await console.events()
    await console.send(f"/events/{ready['event_id']}/approve")

    page = await console.see(f"/events/{ready['event_id']}")
    last = await console.see(f"/events/{other['event_id']}")

    [name] = other["resources"]
    assert f'<a href="/events/{other["event_id"]}">Freeze of {name}</a>' in page
    assert f"in {other['scope']} (waits for approval)" in text_of(page)
    assert f"in {ready['scope']} (ready)" in text_of(last)
    assert "Approved by console, but a host's maintenance begins when every scope" in text_of(page)


async def test_an_event_is_called_off_with_its_reason(console: Looking) -> None:
    event_id = await _reboot(console)

    await console.send(f"/events/{event_id}/cancel", reason="not <today>")

    page = await console.see(f"/events/{event_id}")
    assert "It was canceled: not <today>" in text_of(page)
    assert "not &lt;today&gt;" in page
    assert "It is in no document any more" in text_of(page)


async def test_what_cannot_be_done_is_said_on_the_page(console: Looking) -> None:
    event_id = await _reboot(console)
    await console.send(f"/events/{event_id}/approve")

    answer = await console.send(f"/events/{event_id}/cancel", reason="")

    assert "has started and can't be canceled any more" in text_of(answer.text)


async def test_each_api_version_shows_the_event_as_its_vms_read_it(console: Looking) -> None:
    event_id = await _reboot(console, duration="9s")

    page = text_of(await console.see(f"/events/{event_id}"))

    assert '"DurationInSeconds": 9' in page
    assert "api-version 2017-03-01" in page
    assert '"_web"' in page
    assert page.index("2020-07-01") < page.index("api-version 2017-03-01")


@pytest.mark.parametrize("text", HOSTILE)
async def test_what_people_write_is_shown_as_text(console: Looking, text: str) -> None:
    event_id = await _reboot(console, description=text)

    for path in ("/", f"/events/{event_id}", "/vms/web", "/history"):
        page = await console.see(path)

        assert not re.search(r"<script>|<img", page)
    assert text in text_of(await console.see(f"/events/{event_id}"))


@pytest.mark.parametrize("text", HOSTILE)
async def test_what_people_ask_for_is_shown_as_text(console: Looking, text: str) -> None:
    for path in (f"/fleet?find={text}", f"/history?vm={text}&type={text}"):
        answer = await console.http.get(path)

        assert not re.search(r"<script>|<img", answer.text)


async def test_what_vms_read_of_an_event_is_not_more_than_they_were_told(console: Looking) -> None:
    await console.send("/do/restart", vm="web", step="send")
    [unannounced] = (await console.ask("/v1/events?status=all"))["events"]
    await console.switch_on("db-0")
    await console.send("/do/restart", vm="db-0", step="send")
    [one] = [event for event in await console.events() if event["scope"] == "avset/db"]
    alone = await console.see(f"/events/{one['event_id']}")
    await console.send("/do/restart", vm="db-1", step="send")

    among_others = await console.see(f"/events/{one['event_id']}")
    silent = await console.see(f"/events/{unannounced['event_id']}")

    assert "This event alone" not in alone
    assert "This event alone" in among_others
    assert "they are not told of what is carried out without notice" in text_of(silent)
    assert "how its VMs know" not in silent
