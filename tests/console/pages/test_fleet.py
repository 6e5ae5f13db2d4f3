"""The fleet as people look at it: domains as a grid, activation, one VM as it sees itself."""

import re

from forewarned.console.pages.fleet import grid
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Resource
from tests.console.console_client import ConsoleClient, console_client, text_of


def _vm(name: str, update: int, fault: int) -> Resource:
    return Resource(
        name=ResourceName(name), host=HostName("h"), update_domain=update, fault_domain=fault
    )


def test_a_grid_has_a_cell_where_each_update_and_fault_domain_meet() -> None:
    drawn = grid([_vm("a", 0, 0), _vm("b", 2, 1), _vm("c", 0, 0)])

    names = [(update, [[vm.name for vm in cell] for cell in cells]) for update, cells in drawn.rows]
    assert drawn.fault_domains == [0, 1]
    assert names == [(0, [["a", "c"], []]), (2, [[], ["b"]])]


async def test_activation_tells_who_read_and_when_it_switches_off(console: ConsoleClient) -> None:
    before = text_of(await console.see("/scopes/avset/db"))
    await console.switch_on("db-1")

    after = text_of(await console.see("/scopes/avset/db"))

    assert "no VM has read its document yet" in before
    assert "On last read" in after
    assert "UTC by db-1 ; turns off" in after
    assert "turns off" in after
    assert "by vm:db-1" in after


async def test_the_fleet_and_a_vm_tell_who_read_last_before_the_store_knows(
    console: ConsoleClient,
) -> None:
    await console.switch_on("db-0")
    console.use_cases.activation.seen(ScopeId("avset/db"), ResourceName("db-1"))

    fleet = text_of(await console.see("/fleet"))
    reader = text_of(await console.see("/vms/db-1"))
    other = text_of(await console.see("/vms/db-0"))

    assert re.search(r"avset/db availability set 3 VMs .* On last read [^O]* UTC by db-1", fleet)
    assert "on: this VM read it last" in reader
    assert "UTC by db-1" in other


async def test_reading_as_a_vm_switches_its_scope_on(console: ConsoleClient) -> None:
    answer = await console.send("/vms/web/read")

    scope = await console.ask("/v1/scopes/vm/web")
    assert answer.status_code == 303
    assert scope["active"] is True


async def test_nobody_reads_for_a_real_vm() -> None:
    async with console_client(mode="service") as console:
        answer = await console.send("/vms/web/read")

        assert answer.status_code == 404
        assert (await console.ask("/v1/scopes/vm/web"))["active"] is False
        assert "Read as this VM" not in await console.see("/vms/web")


async def test_a_vm_page_shows_its_document_in_the_version_chosen(console: ConsoleClient) -> None:
    await console.switch_on("web")
    await console.send("/actions/restart", vm="web", step="send")

    old = text_of(await console.see("/vms/WEB?api-version=2017-03-01"))
    new = text_of(await console.see("/vms/web?api-version=nonsense"))

    assert '"_web"' in old
    assert "/vm/web/metadata/scheduledevents?api-version=2017-03-01" in old
    assert '"EventSource": "User"' in new
    assert '"resourceGroupName": "shop"' in new


async def test_a_scope_marks_the_vms_that_something_is_to_happen_to(console: ConsoleClient) -> None:
    await console.switch_on("db-0")
    await console.send("/actions/schedule", type="Freeze", vm="db-1", step="send")

    page = text_of(await console.see("/scopes/avset/db"))

    assert re.search(r"db-1 running, \S+ Freeze", page), page
    assert not re.search(r"db-0 running, \S+ Freeze", page)


async def test_scopes_vms_and_hosts_are_found_by_part_of_their_name(console: ConsoleClient) -> None:
    by_host = text_of(await console.see("/fleet?find=rack2"))
    none = text_of(await console.see("/fleet?find=zzz"))

    assert "cheap" in by_host
    assert "avset/db" not in by_host
    assert "Nothing matches" in none


def _rows(page: str) -> list[str]:
    return re.findall(r'<tr id="scope-([^"]*)"', page)


async def test_what_is_found_is_listed_once_in_the_order_of_the_fleet(
    console: ConsoleClient,
) -> None:
    """By scope, by VM in any letter case, and by host."""
    page = await console.see("/fleet?find=D")
    by_vm = await console.see("/fleet?find=DB-1")

    assert _rows(page) == ["avset/db"]
    assert _rows(by_vm) == ["avset/db"]


async def test_every_scope_has_one_row_with_its_counts(console: ConsoleClient) -> None:
    await console.switch_on("db-0")
    await console.send("/actions/schedule", type="Freeze", vm="db-1", step="send")

    page = await console.see("/fleet")

    assert _rows(page) == ["vm/web", "vm/report", "vm/cheap", "avset/db", "vmss/api/0"]
    [row] = re.findall(r'<tr id="scope-avset/db">(.*?)</tr>', page, re.DOTALL)
    assert text_of(row).startswith(
        "avset/db availability set 3 VMs db-0 , db-1 , db-2 1 open event On last read"
    )
    assert text_of(row).endswith("UTC by db-0")
    [unread] = re.findall(r'<tr id="scope-vm/web">(.*?)</tr>', page, re.DOTALL)
    assert text_of(unread) == "vm/web virtual machine 1 VM web 0 open events Off never read"


async def test_a_vm_that_was_looked_for_is_marked_in_its_row_and_on_the_page_of_its_scope(
    console: ConsoleClient,
) -> None:
    page = await console.see("/fleet?find=B-1")
    scope = await console.see("/scopes/avset/db?find=B-1")

    [row] = re.findall(r'<tr id="scope-avset/db">(.*?)</tr>', page, re.DOTALL)
    assert '<a href="/vms/db-1"><bdi>d<mark>b-1</mark></bdi></a>' in row
    assert "db-0" not in row
    assert 'href="/scopes/avset/db?find=B-1"' in row
    assert re.findall(r'class="vm [^"]*found" href="/vms/([^"]*)"', scope) == ["db-1"]


async def test_a_row_that_has_more_of_what_was_looked_for_leads_to_all_of_it() -> None:
    async with console_client(fleet={"scale_sets": [{"name": "shop", "capacity": 20}]}) as console:
        page = await console.see("/fleet?find=shop_1")
        scope = await console.see("/scopes/vmss/shop/0?find=shop_1")

    assert page.count("<mark>shop_1</mark>") == 8
    assert '<a href="/scopes/vmss/shop/0?find=shop_1">and more</a>' in page
    assert scope.count("<mark>") == 11


async def test_a_host_that_was_looked_for_is_named_too(console: ConsoleClient) -> None:
    page = await console.see("/fleet?find=rack1")

    assert _rows(page) == ["vm/web", "vm/report"]
    assert "Hosts found: rack1" in text_of(page)
    assert 'href="/hosts/rack1"' in page


async def test_a_fleet_page_draws_no_vms_and_a_scope_draws_all_of_its_own() -> None:
    sets = [{"name": f"set-{number}", "capacity": 80} for number in range(60)]
    async with console_client(fleet={"scale_sets": sets}) as console:
        page = await console.see("/fleet")
        second = await console.see("/fleet?page=2")
        last = await console.see("/scopes/vmss/set-4/0")

    assert page.count("<tr id=") == 50
    assert text_of(page).count("80 VMs") == 50
    assert page.count('href="/vms/') == 3 * 50
    assert "Page 2 of 2" in second
    assert last.count('class="vm ') == 80
