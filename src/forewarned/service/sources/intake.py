"""Sources: platforms whose VMs the fleet is kept in step with, as actuators report them.

Invariants: a listing that failed, or lacks a host, removes no VM. Listings are taken in in the
order in which they began: one that is older than the last, as a slow node may report it, changes
nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, TypeVar

from forewarned.core.ids import ResourceName
from forewarned.core.model import Actor
from forewarned.service.engine import Engine
from forewarned.service.fleet.apply import FLEET_LEASE
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.fleet.writes import STEP
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Lease, Snapshot, Transaction
from forewarned.service.records import Binding
from forewarned.service.sources import notes, writes
from forewarned.service.sources.errors import ReportingSourceError, UnknownSourceError
from forewarned.service.sources.listing import LONGEST_LISTING, ListedVm, Listing
from forewarned.service.sources.notes import SourceState
from forewarned.service.sources.roster import Difference, FleetView, compare
from forewarned.service.sources.writes import OwnVm, Written

T = TypeVar("T")

_PAGE: Final = 1000
_MOST_REMARKS: Final = 100
_NO_ADDRESS: Final = "its platform gives it no address, so it can't read events: give it one"
_ADDRESS_TAKEN: Final = (
    "another VM already has address {}, so this VM can't read events: give one of the two another"
    " address, or a port mark"
)
_PORT_MARK_TAKEN: Final = (
    "another VM already has port mark {}, so this VM can't read events: give one of the two another"
    " port mark"
)
_NOT_OWN: Final = (
    "already in the fleet, but not from this source, so left as it is. To let this source manage"
    " it, remove it from the fleet (`fleet apply --prune`)"
)
_RENAMED: Final = "its platform calls it {!r} now: the fleet keeps its original name"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What an actuator says of its platform."""

    name: str
    holder: str
    every: timedelta
    """How often it reports."""
    listing: Listing | None
    """None if there is none."""
    error: str = ""
    """Why there is none."""
    began_at: datetime | None = None
    """When the listing began, as `begin` said. None if it was not asked: then it counts as the
    oldest that there may be."""
    where: FleetPlan = field(default_factory=FleetPlan)
    """Subscription, resource group and location of its VMs."""


class _Fleet(NamedTuple):
    """The fleet as a source sees it."""

    own: Mapping[str, OwnVm]
    """By UUID."""
    others: frozenset[str]


class _Look(NamedTuple):
    """A listing beside the fleet."""

    fleet: _Fleet
    difference: Difference
    began_at: datetime


class Sources:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def show(self) -> list[SourceState]:
        return await self._engine.ask(lambda snapshot: [*notes.source_states(snapshot).values()])

    async def begin(self) -> datetime:
        """To be asked before a platform is listed: when that began, by the store's clock."""
        return await self._engine.ask(lambda snapshot: snapshot.now)

    async def take(self, report: SourceReport, *, by: Actor) -> Written:
        """Bring the fleet in step with a listing, or note why there is none."""
        # No plan may change the fleet between the comparison and the writing.
        async with self._engine.lease(FLEET_LEASE) as lease:
            if report.listing is None:
                await self._engine.decide(partial(_note_failure, report=report, lease=lease))
                return Written()
            return await self._take_in(report, report.listing, lease, by=by)

    async def forget(self, name: str, *, by: Actor) -> SourceState:
        """Its VMs stay in the fleet, as any others.

        Raises UnknownSourceError, ReportingSourceError.
        """
        async with self._engine.lease(FLEET_LEASE) as lease:
            found = await self._engine.ask(partial(_no_longer_listed, name=name))
            own = await self._engine.ask(lambda s: [b for b in s.bindings() if _is_of(b, name)])
            for some in _batches(own):
                disown = partial(writes.disown, bindings=some, source=name)
                await self._engine.decide(_checked(disown, lease))

            def forget(tx: Transaction) -> None:
                notes.forget(tx, name)
                tx.record("source forgotten", by=by, cause=name)

            await self._engine.decide(_checked(forget, lease))
        return found

    async def _take_in(
        self, report: SourceReport, listing: Listing, lease: Lease, *, by: Actor
    ) -> Written:
        look = await self._engine.ask(partial(_look, report=report, listing=listing))
        if look is None:
            return Written()
        parts = [
            await self._engine.decide(_checked(step, lease)) for step in _steps(look, report, by=by)
        ]
        written = _total(parts)
        seen = look.fleet
        if not look.difference.is_empty:
            seen = await self._engine.ask(partial(_fleet, name=report.name))
        remarks = list(_remarks(listing, seen, written.left_out))
        state = SourceState(
            name=report.name,
            holder=report.holder,
            every=report.every,
            began_at=look.began_at,
            vms=len(seen.own),
            silent=listing.silent,
            remarks=tuple(remarks[:_MOST_REMARKS]),
            more_remarks=max(0, len(remarks) - _MOST_REMARKS),
        )
        # What could not be added is tried again with the next listing.
        not_added = written.left_out.keys() - look.fleet.own.keys()
        roster = look.difference.roster
        roster = replace(roster, brought=roster.brought - not_added)

        def note(tx: Transaction) -> None:
            former = notes.source_states(tx).get(report.name, state)
            complete_at = tx.now if listing.is_complete else former.complete_at
            notes.put_state(tx, replace(state, reported_at=tx.now, complete_at=complete_at))
            if roster != notes.roster_of(tx, report.name):
                notes.put_roster(tx, report.name, roster)

        await self._engine.decide(_checked(note, lease))
        return written


def _look(snapshot: Snapshot, *, report: SourceReport, listing: Listing) -> _Look | None:
    """None for a listing that is older than the last."""
    oldest = snapshot.now - LONGEST_LISTING
    # No later than now: a store may have got another clock since.
    began_at = min(report.began_at or oldest, snapshot.now)
    last = notes.source_states(snapshot).get(report.name)
    if last is not None and last.began_at is not None and began_at < last.began_at <= snapshot.now:
        return None
    fleet = _fleet(snapshot, name=report.name)
    own = fleet.own
    names = _with_events(snapshot, since=began_at)
    view = FleetView(
        own=frozenset(own),
        others=fleet.others,
        differing=frozenset(
            vm.vm_id
            for vm in listing.vms
            if vm.vm_id in own and not writes.is_as_listed(own[vm.vm_id], vm)
        ),
        busy=frozenset(key for key, (binding, _) in own.items() if binding.name in names),
    )
    roster = notes.roster_of(snapshot, report.name)
    difference = compare(roster, listing, view, began_at=began_at, now=snapshot.now)
    return _Look(fleet, difference, began_at)


def _fleet(snapshot: Snapshot, *, name: str) -> _Fleet:
    own: dict[str, OwnVm] = {}
    others: set[str] = set()
    for binding, host in snapshot.placed_bindings():
        if _is_of(binding, name):
            own[binding.profile.vm_id] = OwnVm(binding, host)
        elif binding.profile.is_platform_id:
            others.add(binding.profile.vm_id)
    return _Fleet(own, frozenset(others))


def _with_events(snapshot: Snapshot, *, since: datetime) -> set[ResourceName]:
    """VMs with an event that is Started, or has ended since then."""
    names = {vm for record in snapshot.started() for vm in record.event.resources}
    wanted = HistoryFilter(action="completed", since=since, limit=_PAGE)
    while rows := snapshot.history(wanted):
        names.update(vm for row in rows if row.at > since for vm in row.resources)
        wanted = replace(wanted, before_id=rows[-1].id)
    return names


def _steps(
    look: _Look, report: SourceReport, *, by: Actor
) -> Iterator[Callable[[Transaction], Written]]:
    """Each small enough for one transaction among others."""
    own, difference, source = look.fleet.own, look.difference, report.name
    for gone in _batches([own[key] for key in difference.removed]):
        yield partial(writes.remove_vms, gone=gone, source=source, by=by)
    for some in _batches(difference.changed):
        yield partial(writes.change_vms, listed=some, own=own, source=source, by=by)
    for some in _batches(difference.added):
        yield partial(writes.add_vms, listed=some, source=source, where=report.where, by=by)


def _remarks(listing: Listing, fleet: _Fleet, left_out: Mapping[str, str]) -> Iterator[str]:
    for vm in listing.vms:
        found = fleet.own.get(vm.vm_id)
        binding = None if found is None else found.binding
        if why := left_out.get(vm.vm_id):
            yield f"{vm.name}: {why}"
        elif vm.vm_id in fleet.others:
            yield f"{vm.name}: {_NOT_OWN}"
        elif binding is not None and not binding.address:
            yield f"{vm.name}: {_why_unreachable(vm)}"
        elif binding is not None and binding.name != vm.name:
            yield f"{binding.name}: {_RENAMED.format(vm.name)}"


def _why_unreachable(vm: ListedVm) -> str:
    if vm.port_mark is not None:
        return _PORT_MARK_TAKEN.format(vm.port_mark)
    return _ADDRESS_TAKEN.format(vm.address) if vm.address else _NO_ADDRESS


def _no_longer_listed(snapshot: Snapshot, *, name: str) -> SourceState:
    found = notes.source_states(snapshot).get(name)
    if found is None:
        raise UnknownSourceError(name)
    if found.reported_at is not None:
        # One that is still listed would come back, and find that its VMs are no longer its own.
        silence, enough = snapshot.now - found.reported_at, 2 * found.every
        if silence < enough:
            raise ReportingSourceError(name, silence=silence, enough=enough)
    return found


def _note_failure(tx: Transaction, *, report: SourceReport, lease: Lease) -> None:
    lease.check(tx)
    former = notes.source_states(tx).get(report.name, SourceState(name=report.name))
    state = replace(
        former,
        holder=report.holder,
        every=report.every,
        reported_at=tx.now,
        error=report.error,
        silent={},
    )
    notes.put_state(tx, state)


def _is_of(binding: Binding, name: str) -> bool:
    return binding.profile.source == name


def _checked(step: Callable[[Transaction], T], lease: Lease) -> Callable[[Transaction], T]:
    def check_and_run(tx: Transaction) -> T:
        lease.check(tx)
        return step(tx)

    return check_and_run


def _batches(parts: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(parts), STEP):
        yield parts[start : start + STEP]


def _total(parts: Sequence[Written]) -> Written:
    return Written(
        added=tuple(name for each in parts for name in each.added),
        changed=tuple(name for each in parts for name in each.changed),
        removed=tuple(name for each in parts for name in each.removed),
        left_out={key: why for each in parts for key, why in each.left_out.items()},
    )
