"""Applying a plan that is too large for one transaction: in steps, but all of it or nothing."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

import pytest
from typing_extensions import override

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.errors import RefusalError
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, Resource
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.errors import (
    AddressTakenError,
    HostSharedError,
    LeaseLostError,
    NameTakenError,
    StoreUnavailableError,
)
from forewarned.service.fleet.apply import Fleet
from forewarned.service.fleet.declaration import (
    AvailabilitySet,
    FleetPlan,
    Member,
    ScaleSet,
    VirtualMachine,
)
from forewarned.service.fleet.placement import AddressesExhaustedError
from forewarned.service.fleet.writes import STEP
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.ports import Lease, Listener, Transaction
from forewarned.service.records import Commit, Place
from forewarned.storage import SqliteStore
from tests.builders import NOON

T = TypeVar("T")

ADA: Final = Actor(name="ada")
LARGE: Final = 3
"""Few enough that each plan here is large, unless a test says otherwise."""
FILLING: Final = tuple(VirtualMachine(name=f"vm-{n}") for n in range(STEP))
"""As many as make a step of their own."""


class LostLease:
    def check(self, tx: Transaction) -> None:
        raise LeaseLostError("fleet")


class Stopping(SqliteStore):
    """Becomes unavailable after a number of transactions."""

    left: int | None = None
    is_leased_elsewhere = False
    """Whether leases are lost as soon as they are held."""

    @override
    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[Lease]:
        async with super().lease(name) as lease:
            yield LostLease() if self.is_leased_elsewhere else lease

    @override
    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        if self.left is not None:
            if not self.left:
                raise StoreUnavailableError
            self.left -= 1
        return await super().transact(function, touching=touching, tell=tell)


class Applying:
    def __init__(self) -> None:
        clock = VirtualClock(NOON, speed=0)
        self.store = Stopping(None, clock, next_wake=partial(lifecycle.next_wake, rules=Rules()))
        self._engine = engine = Engine(self.store)
        engine.tell(self._hear)
        address_range = ipaddress.ip_network("10.0.0.0/16")
        self.fleet = Fleet(engine, Activation(engine, clock, Rules()), address_range, large=LARGE)
        self.commits: list[Commit] = []
        self.progress: list[tuple[int, int]] = []

    async def apply(self, plan: FleetPlan, *, prune: bool = False) -> None:
        await self.fleet.apply(plan, by=ADA, prune=prune, progress=self._note)

    async def refused(self, plan: FleetPlan, *, prune: bool = False) -> RefusalError:
        before = len(self.commits)
        with pytest.raises(RefusalError) as refused:
            await self.apply(plan, prune=prune)
        assert len(self.commits) == before
        return refused.value

    async def note(self, text: str) -> None:
        """A change that has nothing to do with the fleet."""
        await self._engine.decide(lambda tx: tx.put_note("a note", text))

    async def places(self) -> dict[str, Place]:
        return await self.store.read(lambda s: {place.name: place for place in s.places()})

    async def on(self, host: HostName) -> list[ScopeId]:
        return await self.store.read(lambda s: s.scopes_on(host))

    async def vms(self, scope_id: str) -> list[Resource]:
        scope = await self.store.read(lambda s: s.load(ScopeId(scope_id)))
        return list(scope.resources.values())

    def _hear(self, commit: Commit) -> None:
        self.commits.append(commit)

    def _note(self, done: int, total: int) -> None:
        self.progress.append((done, total))


@pytest.fixture
async def applying(anyio_backend: object) -> AsyncIterator[Applying]:
    made = Applying()
    async with made.store:
        yield made


def address_of(places: dict[str, Place], name: str) -> str:
    return places[name].address


async def test_a_large_plan_is_written_in_steps_and_tells_how_far_it_is(
    applying: Applying,
) -> None:
    plan = FleetPlan(vms=FILLING, scale_sets=(ScaleSet(name="api", capacity=230),))

    await applying.apply(plan)

    assert applying.progress == [(0, 730), (500, 730), (730, 730)]
    assert [len(commit.bound) for commit in applying.commits] == [500, 230]
    assert len(await applying.places()) == 730


async def test_a_small_plan_is_one_transaction(applying: Applying) -> None:
    await applying.apply(FleetPlan(vms=FILLING[:LARGE]))

    assert applying.progress == [(0, LARGE), (LARGE, LARGE)]
    assert len(applying.commits) == 1


async def test_a_large_plan_applied_again_changes_nothing(applying: Applying) -> None:
    plan = FleetPlan(scale_sets=(ScaleSet(name="api", capacity=230),))
    first = await applying.fleet.apply(plan, by=ADA)
    before = await applying.places()

    again = await applying.fleet.apply(plan, by=ADA, prune=True)

    assert len(first.added) == 230
    assert (again.added, again.changed, again.removed, again.unchanged) == ((), (), (), 230)
    assert await applying.places() == before


async def test_a_large_plan_with_a_name_of_another_scope_changes_nothing(
    applying: Applying,
) -> None:
    await applying.apply(FleetPlan(vms=(VirtualMachine(name="api_229"),)))

    error = await applying.refused(
        FleetPlan(vms=FILLING, scale_sets=(ScaleSet(name="api", capacity=230),))
    )

    assert isinstance(error, NameTakenError)
    assert error.scope_id == "vm/api_229"


async def test_a_name_in_another_letter_case_is_the_same_name(applying: Applying) -> None:
    await applying.apply(FleetPlan(vms=(VirtualMachine(name="VM-1"),)))

    error = await applying.refused(FleetPlan(vms=FILLING))

    assert isinstance(error, NameTakenError)


async def test_a_large_plan_with_an_address_of_a_vm_that_stays_changes_nothing(
    applying: Applying,
) -> None:
    await applying.apply(FleetPlan(vms=(VirtualMachine(name="old", address="10.0.0.9"),)))
    plan = FleetPlan(vms=(*FILLING, VirtualMachine(name="last", address="10.0.0.9")))

    error = await applying.refused(plan)
    await applying.apply(plan, prune=True)

    assert isinstance(error, AddressTakenError)
    assert error.name == "old"
    assert address_of(await applying.places(), "last") == "10.0.0.9"


async def test_a_large_plan_that_mixes_hosts_of_a_scope_changes_nothing(
    applying: Applying,
) -> None:
    def db(*members: Member) -> FleetPlan:
        return FleetPlan(
            vms=FILLING, availability_sets=(AvailabilitySet(name="db", members=members),)
        )

    old = Member(name="old", host="rack1")
    await applying.apply(db(old))
    new = (Member(name="new-0", host="rack2"), Member(name="new-1", host="rack1"))

    error = await applying.refused(db(*new))
    await applying.apply(db(*new), prune=True)

    assert isinstance(error, HostSharedError)
    assert error.host == "rack1"
    assert "old" not in await applying.places()


@pytest.mark.parametrize("filling", [(), FILLING], ids=["small", "large"])
async def test_a_vm_whose_host_is_another_one_in_the_plan_is_moved_there(
    applying: Applying, filling: tuple[VirtualMachine, ...]
) -> None:
    def plan(host: str) -> FleetPlan:
        return FleetPlan(vms=(*filling, VirtualMachine(name="web", host=host)))

    await applying.apply(plan("rack1"))

    moved = await applying.fleet.apply(plan("rack2"), by=ADA)
    again = await applying.fleet.apply(plan("rack2"), by=ADA)

    assert (moved.changed, moved.unchanged) == (("web",), len(filling))
    assert (again.changed, again.unchanged) == ((), len(filling) + 1)
    assert await applying.on(HostName("rack2")) == ["vm/web"]
    assert await applying.on(HostName("rack1")) == []


@pytest.mark.parametrize("filling", [(), FILLING], ids=["small", "large"])
async def test_vms_of_a_set_change_places(
    applying: Applying, filling: tuple[VirtualMachine, ...]
) -> None:
    def plan(*hosts: str) -> FleetPlan:
        api = ScaleSet(name="api", capacity=2, update_domains=2, hosts=hosts)
        return FleetPlan(vms=filling, scale_sets=(api,))

    await applying.apply(plan("rack1", "rack2"))

    moved = await applying.fleet.apply(plan("rack2", "rack1"), by=ADA)

    assert moved.changed == ("api_0", "api_1")


@pytest.mark.parametrize("filling", [(), FILLING], ids=["small", "large"])
async def test_no_vm_is_moved_to_a_host_with_another_update_domain_of_its_set(
    applying: Applying, filling: tuple[VirtualMachine, ...]
) -> None:
    """I21. The other VM is where it was, for the plan does not say where it is."""

    def plan(*members: Member) -> FleetPlan:
        db = AvailabilitySet(name="db", members=members)
        return FleetPlan(vms=filling, availability_sets=(db,))

    await applying.apply(plan(Member(name="db-0", host="rack1"), Member(name="db-1")))
    [taken] = {vm.host for vm in await applying.vms("avset/db")} - {"rack1"}

    error = await applying.refused(plan(Member(name="db-0", host=taken), Member(name="db-1")))

    assert isinstance(error, HostSharedError)
    assert error.host == taken


async def test_a_vm_stays_where_it_is_while_the_plan_does_not_say_where(
    applying: Applying,
) -> None:
    await applying.apply(FleetPlan(vms=(VirtualMachine(name="web", host="rack1"),)))

    again = await applying.fleet.apply(FleetPlan(vms=(VirtualMachine(name="web"),)), by=ADA)

    assert again.unchanged == 1
    assert await applying.on(HostName("rack1")) == ["vm/web"]


async def test_a_large_plan_with_too_few_addresses_changes_nothing(applying: Applying) -> None:
    small = ipaddress.ip_network("10.9.0.0/23")

    error = await applying.refused(
        FleetPlan(scale_sets=(ScaleSet(name="api", capacity=511),), address_range=small)
    )
    await applying.apply(
        FleetPlan(scale_sets=(ScaleSet(name="api", capacity=510),), address_range=small)
    )

    assert isinstance(error, AddressesExhaustedError)
    assert address_of(await applying.places(), "api_509") == "10.9.1.254"


async def test_two_vms_of_different_steps_may_swap_their_addresses(applying: Applying) -> None:
    def plan(first: str, last: str) -> FleetPlan:
        ends = (VirtualMachine(name="a", address=first), VirtualMachine(name="z", address=last))
        return FleetPlan(vms=(ends[0], *FILLING, ends[1]))

    await applying.apply(plan("10.1.0.1", "10.1.0.2"))
    await applying.apply(plan("10.1.0.2", "10.1.0.1"))

    places = await applying.places()
    assert (address_of(places, "a"), address_of(places, "z")) == ("10.1.0.2", "10.1.0.1")


async def test_a_vm_whose_address_is_declared_for_another_gets_a_free_one(
    applying: Applying,
) -> None:
    await applying.apply(FleetPlan(vms=FILLING))
    lost = address_of(await applying.places(), "vm-7")

    await applying.apply(FleetPlan(vms=(*FILLING, VirtualMachine(name="new", address=lost))))

    places = await applying.places()
    assert address_of(places, "new") == lost
    assert len({place.address for place in places.values()}) == len(FILLING) + 1


async def test_a_vm_moves_to_another_scope_with_its_address(applying: Applying) -> None:
    await applying.apply(FleetPlan(vms=(*FILLING, VirtualMachine(name="db-0"))))
    before = await applying.places()
    members = (Member(name="db-0"),)
    plan = FleetPlan(vms=FILLING, availability_sets=(AvailabilitySet(name="db", members=members),))

    await applying.apply(plan, prune=True)

    moved = (await applying.places())["db-0"]
    assert moved == before["db-0"]._replace(scope_id=ScopeId("avset/db"))


async def test_pruning_many_with_a_plan_of_few_goes_in_steps(applying: Applying) -> None:
    await applying.apply(FleetPlan(vms=FILLING, scale_sets=(ScaleSet(name="api", capacity=120),)))
    applying.progress.clear()

    await applying.apply(FleetPlan(vms=(VirtualMachine(name="vm-3"),)), prune=True)

    assert applying.progress == [(0, 620), (599, 620), (619, 620), (620, 620)]
    assert list(await applying.places()) == ["vm-3"]


async def test_a_plan_that_was_broken_off_is_brought_to_its_end_by_applying_it_again(
    applying: Applying,
) -> None:
    plan = FleetPlan(vms=FILLING, scale_sets=(ScaleSet(name="api", capacity=230),))
    applying.store.left = 1
    with pytest.raises(StoreUnavailableError):
        await applying.fleet.apply_once(plan, by=ADA)
    halfway = len(await applying.places())
    applying.store.left = None

    done = await applying.fleet.apply_once(plan, by=ADA)
    again = await applying.fleet.apply_once(plan, by=ADA)

    assert halfway == 500
    assert done is not None
    assert (len(done.added), done.unchanged) == (230, 500)
    assert again is None


async def test_the_plan_that_was_applied_once_is_told_from_all_others(applying: Applying) -> None:
    plan, other = FleetPlan(vms=FILLING), FleetPlan(vms=FILLING[1:])
    before = await applying.fleet.applied_once()
    await applying.fleet.apply_once(plan, by=ADA)

    is_known = await applying.fleet.applied_once()

    assert not before(plan)
    assert is_known(plan)
    assert not is_known(other)


async def test_a_vm_left_without_an_address_by_what_was_broken_off_gets_one(
    applying: Applying,
) -> None:
    await applying.apply(FleetPlan(vms=FILLING))
    lost = address_of(await applying.places(), "vm-7")
    wanted = FleetPlan(vms=(*FILLING, VirtualMachine(name="new", address=lost)))
    applying.store.left = 1
    with pytest.raises(StoreUnavailableError):
        await applying.apply(wanted)
    between = address_of(await applying.places(), "vm-7")
    applying.store.left = None

    await applying.apply(FleetPlan(vms=FILLING))

    assert between == ""
    assert address_of(await applying.places(), "vm-7")


async def test_a_plan_goes_on_when_nobody_waits_for_it_any_more(applying: Applying) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    def progress(done: int, total: int) -> None:
        begun.set()
        if done == total:
            ended.set()

    waiting = asyncio.ensure_future(
        applying.fleet.apply(FleetPlan(vms=FILLING), by=ADA, progress=progress)
    )
    await begun.wait()
    waiting.cancel()
    await ended.wait()

    assert len(await applying.places()) == len(FILLING)


async def test_other_changes_have_their_turn_between_steps(applying: Applying) -> None:
    others: list[asyncio.Task[None]] = []

    def progress(_: int, __: int) -> None:
        if not others:
            others.append(asyncio.ensure_future(applying.note("between")))

    plan = FleetPlan(vms=FILLING, scale_sets=(ScaleSet(name="api", capacity=90),))
    await applying.fleet.apply(plan, by=ADA, progress=progress)

    await others[0]
    assert [len(commit.bound) for commit in applying.commits] == [0, 500, 90]


async def test_plans_are_applied_one_after_another(applying: Applying) -> None:
    """Or one would be written by what was true before the other."""
    stand_alone = FleetPlan(vms=(*FILLING, VirtualMachine(name="api_0")))
    scale_set = FleetPlan(scale_sets=(ScaleSet(name="api", capacity=1),))

    one, other = await asyncio.gather(
        applying.fleet.apply(stand_alone, by=ADA),
        applying.fleet.apply(scale_set, by=ADA),
        return_exceptions=True,
    )

    assert not isinstance(one, BaseException)
    assert isinstance(other, NameTakenError)
    assert ResourceName("api_0") in one.added


@pytest.mark.parametrize("plan", [FleetPlan(vms=FILLING[:LARGE]), FleetPlan(vms=FILLING)])
async def test_a_plan_stops_where_another_node_has_taken_its_place(
    applying: Applying, plan: FleetPlan
) -> None:
    """The next step would be written by what was true before the other node's."""
    applying.store.is_leased_elsewhere = True

    with pytest.raises(LeaseLostError):
        await applying.fleet.apply_once(plan, by=ADA)

    assert applying.commits == []
    applying.store.is_leased_elsewhere = False
    assert await applying.fleet.apply_once(plan, by=ADA) is not None
