"""Hosts: what is on them, what is under way there, what can be done."""

import re

from forewarned.control.fleet.wire import parse
from forewarned.core.ids import HostName
from forewarned.service.drains.model import DrainOrder
from tests.builders import OPERATOR
from tests.console.console_client import ConsoleClient, console_client, text_of


def _row(page: str, host: str) -> str:
    found = re.search(rf'<tr id="host-{host}">(.*?)</tr>', page, re.DOTALL)
    assert found is not None, page
    return text_of(found[1])


async def test_every_host_has_a_row_with_its_vms_and_scopes_counted(console: ConsoleClient) -> None:
    page = await console.see("/hosts")

    assert _row(page, "rack1").startswith("rack1 2 VMs 2 scopes nothing")
    assert _row(page, "rack2").startswith("rack2 1 VM 1 scope nothing")
    assert "none with open events" in text_of(page)


async def test_a_host_tells_of_its_maintenance_and_when_it_is(console: ConsoleClient) -> None:
    await console.switch_on("web", "report")
    await console.send("/actions/maintain-host", host="rack1", type="Freeze", step="send")

    page = await console.see("/hosts")

    assert "Freeze Scheduled , maintenance, 2 events in 15m" in _row(page, "rack1")
    assert "nothing" in _row(page, "rack2")
    assert "1 with open events" in text_of(page)


async def test_a_host_tells_of_a_failure_that_is_predicted(console: ConsoleClient) -> None:
    await console.switch_on("web", "report")
    await console.send("/actions/predict-failure", host="rack1", step="send")

    assert "Redeploy Scheduled , failure predicted, 2 events" in _row(
        await console.see("/hosts"), "rack1"
    )


async def test_a_host_tells_of_its_failure_while_its_vms_are_moved(console: ConsoleClient) -> None:
    await console.switch_on("web", "report")
    await console.confirm("/actions/fail-host", host="rack1")

    page = await console.see("/hosts?affected=on")

    assert "Redeploy Started , host failure, 2 events" in text_of(page)


async def test_a_restart_of_a_vm_is_no_work_on_its_host(console: ConsoleClient) -> None:
    await console.switch_on("cheap")
    await console.send("/actions/restart", vm="cheap", step="send")
    [event] = await console.events()

    page = await console.see("/hosts")

    assert "Reboot Scheduled in 15m" in _row(page, "rack2")
    assert f'href="/events/{event["event_id"]}"' in page


async def test_hosts_are_found_by_name_and_narrowed_to_those_with_events(
    console: ConsoleClient,
) -> None:
    await console.switch_on("cheap")
    await console.send("/actions/restart", vm="cheap", step="send")

    found = await console.see("/hosts?find=RACK")
    affected = await console.see("/hosts?affected=on")
    none = text_of(await console.see("/hosts?find=rack1&affected=on"))

    assert re.findall(r'<tr id="host-([^"]*)"', found) == ["rack1", "rack2"]
    assert re.findall(r'<tr id="host-([^"]*)"', affected) == ["rack2"]
    assert "host matches" in none


async def test_hosts_are_listed_in_natural_order() -> None:
    fleet = {"vms": [{"name": f"vm-{n}", "host": f"host-{n}"} for n in (10, 2, 1)]}
    async with console_client(fleet=fleet) as console:
        page = await console.see("/hosts")

    assert re.findall(r'<tr id="host-([^"]*)"', page) == ["host-1", "host-2", "host-10"]


async def test_a_page_of_hosts_shows_some_of_many() -> None:
    fleet = {"vms": [{"name": f"vm-{n}", "host": f"host-{n:03}"} for n in range(120)]}
    async with console_client(fleet=fleet) as console:
        first = await console.see("/hosts")
        last = await console.see("/hosts?page=3")
        beyond = await console.see("/hosts?page=9")

    assert first.count("<tr id=") == 50
    assert "Page 1 of 3" in first
    assert last.count("<tr id=") == 20
    assert beyond.count("<tr id=") == 0


async def test_what_can_be_done_to_a_host_leads_to_its_form_with_a_preview(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web")

    for path in ("/hosts", "/hosts/rack1"):
        page = await console.see(path)

        assert 'href="/actions/maintain-host?host=rack1"' in page
        for action in ("predict-failure", "fail-host"):
            assert f'href="/actions/{action}?host=rack1&amp;step=preview"' in page
            told = text_of(await console.see(f"/actions/{action}?host=rack1&step=preview"))
            assert "What will happen" in told
            assert "web in vm/web" in told
    assert await console.events() == []


async def test_a_host_lists_its_vms_and_their_events(console: ConsoleClient) -> None:
    await console.switch_on("web")
    await console.send("/actions/restart", vm="web", step="send")

    page = text_of(await console.see("/hosts/rack1"))

    assert "2 VMs in 2 scopes" in page
    assert "web vm/web running update 0, fault 0 Reboot Scheduled" in page
    assert "report vm/report running" in page
    assert "db-0" not in page


async def test_a_host_lists_its_vms_in_natural_order() -> None:
    fleet = {"vms": [{"name": f"vm-{n}", "host": "h"} for n in (10, 9, 100)]}
    async with console_client(fleet=fleet) as console:
        page = text_of(await console.see("/hosts/h"))

    assert re.findall(r"vm/(vm-[0-9]+)", page) == ["vm-9", "vm-10", "vm-100"]


async def test_a_host_that_no_vm_is_on_has_no_page(console: ConsoleClient) -> None:
    page = await console.see("/hosts/nowhere", 404)

    assert "No VM runs on a host named" in text_of(page)


async def test_a_host_tells_how_far_its_drain_has_come(console: ConsoleClient) -> None:
    await console.switch_on("web", "report")
    drains = console.use_cases.drains
    await drains.begin(HostName("rack1"), DrainOrder(), by=OPERATOR)

    under_way = text_of(await console.see("/hosts/rack1"))
    await drains.end(HostName("rack1"), by=OPERATOR)
    over = text_of(await console.see("/hosts/rack1"))

    assert "Notice since" in under_way
    assert "0 of 2 VMs moved" in under_way
    assert "waiting for approval, or its NotBefore in 15m" in under_way
    assert "Canceled since" in over
    assert "Ended by operator." in over


async def test_a_host_that_was_emptied_stays_listed_until_vms_may_be_moved_there_again(
    console: ConsoleClient,
) -> None:
    await console.switch_on("web", "report")
    drains, rack1 = console.use_cases.drains, HostName("rack1")
    await drains.begin(rack1, DrainOrder(), by=OPERATOR)
    elsewhere = parse({"vms": [{"name": vm, "host": "rack9"} for vm in ("web", "report")]})
    await console.use_cases.fleet.apply(elsewhere, by=OPERATOR)

    emptied = await console.see("/hosts")
    await drains.end(rack1, by=OPERATOR)
    ended = await console.see("/hosts")

    assert _row(emptied, "rack1").startswith("rack1 0 VMs 0 scopes Drain: Notice, cordoned")
    assert 'id="host-rack1"' not in ended
