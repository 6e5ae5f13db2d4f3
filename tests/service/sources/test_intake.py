"""A fleet that is kept in step with a platform, over a store in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from forewarned.clock import VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import EventSource, EventType
from forewarned.core.rules import Rules
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.errors import AddressTakenError
from forewarned.service.events.schedule import EventOrder
from forewarned.service.lifecycle.tasks import Claim, Seen, TaskRef
from forewarned.service.records import Binding
from forewarned.service.sources import writes
from forewarned.service.sources.errors import ReportingSourceError, UnknownSourceError
from forewarned.service.sources.intake import SourceReport
from forewarned.service.sources.listing import ListedVm, Listing
from forewarned.service.sources.notes import SourceState
from forewarned.service.sources.roster import APART
from forewarned.service.sources.writes import OwnVm, Written
from forewarned.service.use_cases import UseCases
from tests.bases import a_basis, a_store
from tests.builders import MINUTE, NOON, OPERATOR, SECOND

WEB = ListedVm(
    vm_id="5b0b8a3e-0000-4000-8000-000000000001", name="web", host="hv-a", address="10.0.0.1"
)
DB = ListedVm(
    vm_id="5b0b8a3e-0000-4000-8000-000000000002", name="db", host="hv-b", address="10.0.0.2"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    use_cases: UseCases
    clock: VirtualClock

    async def lists(
        self, *vms: ListedVm, silent: dict[str, str] | None = None, source: str = "rack1"
    ) -> Written:
        listing = Listing(vms=vms, silent=silent or {})
        return await self.report(listing, source=source)

    async def report(
        self, listing: Listing | None, *, error: str = "", source: str = "rack1"
    ) -> Written:
        await self.clock.step(APART)
        began_at = await self.use_cases.sources.begin()
        return await self.take(listing, began_at=began_at, error=error, source=source)

    async def take(
        self,
        listing: Listing | None,
        *,
        began_at: datetime | None,
        error: str = "",
        source: str = "rack1",
    ) -> Written:
        report = SourceReport(
            name=source,
            holder="one:1",
            every=timedelta(seconds=30),
            listing=listing,
            error=error,
            began_at=began_at,
        )
        return await self.use_cases.sources.take(report, by=OPERATOR)

    async def state(self) -> SourceState:
        [state] = await self.use_cases.sources.show()
        return state

    async def binding(self, name: str) -> Binding:
        found = await self.use_cases.engine.ask(lambda snapshot: snapshot.binding(name))
        assert found is not None
        return found

    async def names(self) -> list[str]:
        return await self.use_cases.engine.ask(lambda s: sorted(b.name for b in s.bindings()))

    async def host_of(self, name: str) -> str:
        scope_id = (await self.binding(name)).scope_id
        scope = await self.use_cases.engine.ask(lambda snapshot: snapshot.load(scope_id))
        return scope.resources[ResourceName(name)].host

    async def apply(self, *vms: dict[str, object], prune: bool = False) -> None:
        plan = parse({"vms": [*vms]})
        await self.use_cases.fleet.apply(plan, by=OPERATOR, prune=prune)

    async def start(self, name: str) -> None:
        """A live migration. No guest reads, so nothing is waited for."""
        order = EventOrder(
            type=EventType.FREEZE, source=EventSource.PLATFORM, resources=(ResourceName(name),)
        )
        await self.use_cases.scheduler.schedule(order, by=OPERATOR)

    async def carry_out(self, *, to: str) -> Claim:
        """What has started, as an actuator does and reports it."""
        tasks = self.use_cases.tasks
        [claim] = await tasks.claim("rack1", holder="one", limit=9)
        ref = TaskRef(claim.task.event_id, claim.task.vm, claim.task.attempt)
        await tasks.begin(ref, Seen(), by=OPERATOR)
        await tasks.finish(ref, Seen("{}", HostName(to)), by=OPERATOR)
        return claim


@pytest.fixture
async def platform(anyio_backend: object) -> AsyncIterator[Platform]:
    clock = VirtualClock(NOON, speed=0)
    async with a_store(clock) as store:
        application = Application(
            store, clock, a_basis(Rules(short_notice_allowed=True)), BoardDelivery()
        )
        async with application, clock:
            yield Platform(use_cases=application.use_cases, clock=clock)


async def test_what_a_platform_has_comes_into_the_fleet_as_it_is_there(platform: Platform) -> None:
    written = await platform.lists(WEB, DB)

    binding = await platform.binding("web")
    assert written.added == ("web", "db")
    assert (binding.address, await platform.host_of("web")) == ("10.0.0.1", "hv-a")
    assert (binding.profile.platform_id, binding.profile.source) == (WEB.vm_id, "rack1")
    state = await platform.state()
    assert (state.name, state.vms, state.remarks) == ("rack1", 2, ())
    assert state.complete_at == state.reported_at == platform.clock.now()
    assert await platform.lists(WEB, DB) == Written()


async def test_a_vm_that_moved_and_got_another_address_is_found_there(platform: Platform) -> None:
    await platform.lists(WEB, DB)

    swapped = (replace(WEB, address=DB.address, host="hv-b"), replace(DB, address=WEB.address))
    written = await platform.lists(*swapped)

    assert written.changed == ("web", "db")
    assert [(await platform.binding(name)).address for name in ("web", "db")] == [
        "10.0.0.2",
        "10.0.0.1",
    ]
    assert await platform.host_of("web") == "hv-b"


async def test_a_vm_leaves_after_two_complete_listings_and_never_by_a_failed_one(
    platform: Platform,
) -> None:
    await platform.lists(WEB, DB)

    await platform.lists(WEB, silent={"hv-b": "no route"})
    await platform.report(None, error="Keystone does not answer")
    failed = await platform.state()
    await platform.lists(WEB, silent={"hv-b": "no route"})
    partial = await platform.state()
    first = await platform.lists(WEB)
    kept = await platform.names()
    second = await platform.lists(WEB)

    assert (failed.error, failed.vms) == ("Keystone does not answer", 2)
    assert (partial.error, dict(partial.silent)) == ("", {"hv-b": "no route"})
    assert partial.complete_at is not None
    assert partial.reported_at is not None
    assert partial.complete_at < partial.reported_at
    assert (first.removed, kept) == ((), ["db", "web"])
    assert (second.removed, await platform.names()) == (("db",), ["web"])


async def test_a_vm_that_was_made_again_gets_its_name_when_the_old_one_has_left(
    platform: Platform,
) -> None:
    """F18."""
    await platform.lists(WEB)
    again = replace(WEB, vm_id="5b0b8a3e-0000-4000-8000-00000000000a")

    await platform.lists(again)
    state = await platform.state()
    await platform.lists(again)

    assert state.remarks == ("web: another VM of the fleet has its name: rename one of them",)
    assert (await platform.binding("web")).profile.vm_id == again.vm_id
    assert (await platform.state()).remarks == ()


async def test_a_renamed_vm_keeps_its_name_and_its_document(platform: Platform) -> None:
    """A tenant may rename its VM at will: an event of it must not end by that."""
    await platform.lists(WEB)

    await platform.lists(replace(WEB, name="www"))

    assert await platform.names() == ["web"]
    assert (await platform.state()).remarks == (
        "web: its platform calls it 'www' now: the fleet keeps its original name",
    )


async def test_vms_without_an_address_of_their_own_are_in_the_fleet_but_cannot_read(
    platform: Platform,
) -> None:
    """A drain must know them, and no VM may read another's events (S1)."""
    same = replace(DB, address=WEB.address)
    none = ListedVm(vm_id="5b0b8a3e-0000-4000-8000-000000000003", name="bare", host="hv-a")

    await platform.lists(WEB, same, none)
    first = await platform.state()
    await platform.lists(replace(WEB, address="10.0.0.9"), same, none)

    assert len(first.remarks) == 2
    assert first.remarks[0].startswith("db: another VM already has address 10.0.0.1, so this VM")
    assert first.remarks[1].startswith("bare: its platform gives it no address")
    assert (await platform.binding("db")).address == "10.0.0.1"
    assert (await platform.binding("bare")).address == ""


async def test_a_vm_with_a_port_mark_is_known_by_that(platform: Platform) -> None:
    await platform.lists(replace(WEB, port_mark=101, interface="vm-web"))

    binding = await platform.binding("web")
    assert (binding.address, binding.private_address) == ("port:101", "10.0.0.1")
    assert binding.profile.interface == "vm-web"

    await platform.lists(replace(WEB, port_mark=101), replace(DB, port_mark=101))
    clash = "db: another VM already has port mark 101, so this VM can't read events: "
    assert (await platform.state()).remarks == (f"{clash}give one of the two another port mark",)


async def test_vms_of_a_set_share_a_scope_and_those_on_one_host_an_update_domain(
    platform: Platform,
) -> None:
    shop = [
        replace(
            WEB,
            vm_id=f"5b0b8a3e-0000-4000-8000-0000000000{n:02}",
            name=f"shop-{n}",
            host=host,
            address=f"10.0.1.{n}",
            availability_set="shop",
        )
        for n, host in enumerate(("hv-a", "hv-b", "hv-a"))
    ]

    await platform.lists(*shop)

    scope = await platform.use_cases.engine.ask(lambda s: s.load(s.scope_ids("avset/shop")[0]))
    assert {str(vm.name): vm.update_domain for vm in scope.resources.values()} == {
        "shop-0": 0,
        "shop-1": 1,
        "shop-2": 0,
    }
    assert {vm.actuator for vm in scope.resources.values()} == {"rack1"}


async def test_a_source_leaves_what_operators_and_other_sources_declare(
    platform: Platform,
) -> None:
    await platform.apply({"name": "web", "vm_id": WEB.vm_id, "host": "hv-z"})
    await platform.lists(DB, source="rack2")

    await platform.lists(replace(WEB, host="hv-b"), DB)
    states = {state.name: state for state in await platform.use_cases.sources.show()}
    await platform.lists()
    await platform.lists()

    assert states["rack1"].remarks[0] == (
        "web: already in the fleet, but not from this source, so left as it is. To let this source manage"
        " it, remove it from the fleet (`fleet apply --prune`)"
    )
    assert await platform.names() == ["db", "web"]
    assert await platform.host_of("web") == "hv-z"


async def test_pruning_leaves_what_sources_have_brought(platform: Platform) -> None:
    await platform.apply({"name": "old"})
    await platform.lists(WEB)

    with pytest.raises(AddressTakenError):
        await platform.apply({"name": "new", "address": WEB.address}, prune=True)
    await platform.apply({"name": "new"}, prune=True)

    assert await platform.names() == ["new", "web"]


async def test_what_a_file_declares_is_the_files_and_what_a_source_forgets_anyones(
    platform: Platform,
) -> None:
    await platform.lists(WEB, DB)
    await platform.apply({"name": "web", "vm_id": WEB.vm_id, "address": WEB.address})

    await platform.lists()
    await platform.lists()
    after = await platform.names()
    await platform.lists(DB)
    await platform.clock.step(MINUTE)
    await platform.use_cases.sources.forget("rack1", by=OPERATOR)

    assert after == ["web"]
    assert (await platform.binding("db")).profile.source == ""
    assert await platform.use_cases.sources.show() == []
    with pytest.raises(UnknownSourceError):
        await platform.use_cases.sources.forget("rack1", by=OPERATOR)


async def test_a_source_that_is_still_listed_is_not_forgotten(platform: Platform) -> None:
    """It would come back with its next listing, and its VMs would be anyone's."""
    await platform.lists(WEB)
    await platform.clock.step(MINUTE - 30 * SECOND)

    with pytest.raises(ReportingSourceError, match=r"'rack1' reported 30s ago.* 1m after its last"):
        await platform.use_cases.sources.forget("rack1", by=OPERATOR)

    assert (await platform.binding("web")).profile.source == "rack1"


async def test_a_vm_that_is_being_moved_is_left_to_its_actuator(platform: Platform) -> None:
    await platform.lists(WEB, DB)
    await platform.start("web")

    await platform.lists(DB)
    await platform.lists(DB)
    await platform.lists(replace(WEB, host="hv-d"), DB)
    before = await platform.host_of("web")
    claim = await platform.carry_out(to="hv-c")

    assert claim.vm_id == WEB.vm_id
    assert (before, await platform.host_of("web")) == ("hv-a", "hv-c")


async def test_a_listing_that_began_before_a_move_was_over_does_not_move_the_vm_back(
    platform: Platform,
) -> None:
    """A slow listing of one node, while another node's actuator moves the VM."""
    await platform.lists(WEB, DB)
    began_at = await platform.use_cases.sources.begin()
    await platform.clock.step(APART)
    await platform.start("web")
    await platform.carry_out(to="hv-c")

    late = await platform.take(Listing(vms=(WEB, replace(DB, host="hv-d"))), began_at=began_at)

    assert late.changed == ("db",)
    assert await platform.host_of("web") == "hv-c"


async def test_where_the_platform_has_a_vm_counts_in_the_end(platform: Platform) -> None:
    """An actuator may have reported a wrong host, and the platform says the same as ever."""
    await platform.lists(WEB)
    await platform.start("web")
    await platform.carry_out(to="hv-c")

    written = await platform.lists(WEB)

    assert written.changed == ("web",)
    assert await platform.host_of("web") == "hv-a"


async def test_a_listing_that_began_before_the_last_one_changes_nothing(
    platform: Platform,
) -> None:
    began_at = await platform.use_cases.sources.begin()
    await platform.lists(replace(WEB, host="hv-b"))
    taken_in = await platform.state()

    late = await platform.take(Listing(vms=(WEB, DB)), began_at=began_at)
    unsaid = await platform.take(Listing(vms=(WEB, DB)), began_at=None)

    assert late == unsaid == Written()
    assert await platform.host_of("web") == "hv-b"
    assert await platform.state() == taken_in


async def test_what_has_become_another_vm_since_the_comparison_is_not_written(
    platform: Platform,
) -> None:
    """Between comparison and writing an event may start, and a VM be replaced or taken over."""
    await platform.lists(WEB, DB)
    compared = {
        each.vm_id: OwnVm(await platform.binding(each.name), HostName(each.host))
        for each in (WEB, DB)
    }
    moved = [replace(WEB, host="hv-d", address="10.0.0.7"), replace(DB, host="hv-d")]

    async def write(source: str = "rack1") -> list[Written]:
        change = partial(writes.change_vms, listed=moved, own=compared, source=source, by=OPERATOR)
        remove = partial(writes.remove_vms, gone=[*compared.values()], source=source, by=OPERATOR)
        return [await platform.use_cases.engine.decide(each) for each in (change, remove)]

    others = await write("rack2")
    await platform.start("web")
    await platform.apply({"name": "db", "vm_id": DB.vm_id, "address": DB.address})
    own = await write()

    assert others == own == [Written(), Written()]
    assert (await platform.binding("web")).address == WEB.address
    assert [await platform.host_of(name) for name in ("web", "db")] == ["hv-a", "hv-b"]


async def test_a_vm_that_was_moved_since_the_comparison_is_not_moved_back(
    platform: Platform,
) -> None:
    await platform.lists(WEB)
    compared = {WEB.vm_id: OwnVm(await platform.binding("web"), HostName("hv-a"))}
    await platform.start("web")
    await platform.carry_out(to="hv-c")
    listed = [replace(WEB, host="hv-b")]

    written = await platform.use_cases.engine.decide(
        partial(writes.change_vms, listed=listed, own=compared, source="rack1", by=OPERATOR)
    )

    assert written == Written()
    assert await platform.host_of("web") == "hv-c"


async def test_what_cannot_be_in_a_fleet_is_left_out_with_the_reason(platform: Platform) -> None:
    bad = replace(WEB, name="web server")

    written = await platform.lists(bad, replace(DB, vm_id="7"))

    assert written.added == ()
    [name, uuid] = (await platform.state()).remarks
    assert name.startswith("web server: 'web server' is not a name")
    assert uuid.startswith("db: '7' is not a UUID")
