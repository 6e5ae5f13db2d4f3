"""Sources: platforms whose VMs the fleet is kept in step with, as actuators report them.

Invariant: a listing that failed, or lacks a host, removes no VM.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple, TypeVar

from forewarned.core.ids import ResourceName
from forewarned.core.model import Actor
from forewarned.service.engine import Engine
from forewarned.service.fleet.apply import FLEET_LEASE
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.fleet.writes import STEP
from forewarned.service.ports import Lease, Snapshot, Transaction
from forewarned.service.records import Binding
from forewarned.service.sources import notes, writes
from forewarned.service.sources.errors import UnknownSourceError
from forewarned.service.sources.listing import ListedVm, Listing
from forewarned.service.sources.notes import SourceState
from forewarned.service.sources.roster import Difference, Roster, Standing, compare
from forewarned.service.sources.writes import Written

T = TypeVar("T")

_MOST_REMARKS: Final = 100
_NO_ADDRESS: Final = "its platform gives it no address, so it can't read events: give it one"
_ADDRESS_TAKEN: Final = (
    "its address {} is another VM's, so it can't read events: give one of them another, or a"
    " port mark"
)
_NOT_OWN: Final = (
    "it is in the fleet already, but not by this source, which leaves it as it is: take it out of"
    " the fleet file, and apply that with --prune"
)
_RENAMED: Final = "its platform calls it {!r} now: the fleet keeps the name that it came with"


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
    where: FleetPlan = field(default_factory=FleetPlan)
    """Subscription, resource group and location of its VMs."""


class _Fleet(NamedTuple):
    """The fleet as a source sees it."""

    own: Mapping[str, Binding]
    """By UUID."""
    others: frozenset[str]
    difference: Difference


class Sources:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def show(self) -> list[SourceState]:
        return await self._engine.ask(lambda snapshot: [*notes.source_states(snapshot).values()])

    async def take(self, report: SourceReport, *, by: Actor) -> Written:
        """Bring the fleet in step with a listing, or note why there is none."""
        # No plan may change the fleet between the comparison and the writing.
        async with self._engine.lease(FLEET_LEASE) as lease:
            if report.listing is None:
                await self._engine.decide(partial(_note_failure, report=report, lease=lease))
                return Written()
            return await self._take_in(report, report.listing, lease, by=by)

    async def forget(self, name: str, *, by: Actor) -> SourceState:
        """Its VMs stay in the fleet, as any others. Raises UnknownSourceError."""
        async with self._engine.lease(FLEET_LEASE) as lease:
            found = await self._engine.ask(lambda s: notes.source_states(s).get(name))
            if found is None:
                raise UnknownSourceError(name)
            own = await self._engine.ask(lambda s: [b for b in s.bindings() if _is_of(b, name)])
            for some in _batches(own):
                await self._engine.decide(_checked(partial(writes.disown, bindings=some), lease))

            def forget(tx: Transaction) -> None:
                notes.forget(tx, name)
                tx.record("source forgotten", by=by, cause=name)

            await self._engine.decide(_checked(forget, lease))
        return found

    async def _take_in(
        self, report: SourceReport, listing: Listing, lease: Lease, *, by: Actor
    ) -> Written:
        look = partial(_look, name=report.name, listing=listing)
        fleet = await self._engine.ask(look)
        parts = [
            await self._engine.decide(_checked(step, lease))
            for step in _steps(fleet, report, by=by)
        ]
        written = _total(parts)
        seen = fleet
        if not fleet.difference.is_empty:
            seen = await self._engine.ask(look)
        remarks = list(_remarks(listing, seen, written.left_out))
        state = SourceState(
            name=report.name,
            holder=report.holder,
            every=report.every,
            vms=len(seen.own),
            silent=listing.silent,
            remarks=tuple(remarks[:_MOST_REMARKS]),
            more_remarks=max(0, len(remarks) - _MOST_REMARKS),
        )
        roster = fleet.difference.roster

        def note(tx: Transaction) -> None:
            former = notes.source_states(tx).get(report.name, state)
            complete_at = tx.now if listing.is_complete else former.complete_at
            notes.put_state(tx, replace(state, reported_at=tx.now, complete_at=complete_at))
            before = notes.roster_of(tx, report.name)
            if (after := _less(roster, before, written.left_out)) != before:
                notes.put_roster(tx, report.name, after)

        await self._engine.decide(_checked(note, lease))
        return written


def _look(snapshot: Snapshot, *, name: str, listing: Listing) -> _Fleet:
    own: dict[str, Binding] = {}
    others: set[str] = set()
    for binding in snapshot.bindings():
        if _is_of(binding, name):
            own[binding.profile.vm_id] = binding
        elif binding.profile.is_platform_id:
            others.add(binding.profile.vm_id)
    started = {vm for record in snapshot.started() for vm in record.event.resources}
    standing = Standing(
        own=frozenset(own),
        others=frozenset(others),
        busy=frozenset(key for key, binding in own.items() if binding.name in started),
    )
    roster = _without_unaddressed(notes.roster_of(snapshot, name), own)
    difference = compare(roster, listing, standing, now=snapshot.now)
    return _Fleet(own, standing.others, difference)


def _without_unaddressed(roster: Roster, own: Mapping[str, Binding]) -> Roster:
    """A VM whose address is another's is tried again: the other may have given it up."""
    lacking = {key for key, binding in own.items() if not binding.address}
    return replace(roster, vms={key: vm for key, vm in roster.vms.items() if key not in lacking})


def _steps(
    fleet: _Fleet, report: SourceReport, *, by: Actor
) -> Iterator[Callable[[Transaction], Written]]:
    """Each small enough for one transaction among others."""
    names = {key: binding.name for key, binding in fleet.own.items()}
    difference = fleet.difference
    for gone in _batches([names[key] for key in difference.removed]):
        yield partial(writes.remove_vms, names=gone, by=by)
    for some in _batches(difference.changed):
        yield partial(_release, listed=some, names=names)
    for some in _batches(difference.changed):
        yield partial(writes.change_vms, listed=some, names=names, by=by)
    for some in _batches(difference.added):
        yield partial(writes.add_vms, listed=some, source=report.name, where=report.where, by=by)


def _release(
    tx: Transaction, *, listed: Sequence[ListedVm], names: Mapping[str, ResourceName]
) -> Written:
    writes.release_addresses(tx, listed, names=names)
    return Written()


def _remarks(listing: Listing, fleet: _Fleet, left_out: Mapping[str, str]) -> Iterator[str]:
    for vm in listing.vms:
        binding = fleet.own.get(vm.vm_id)
        if why := left_out.get(vm.vm_id):
            yield f"{vm.name}: {why}"
        elif vm.vm_id in fleet.others:
            yield f"{vm.name}: {_NOT_OWN}"
        elif binding is not None and not binding.address:
            address = vm.address if vm.port_mark is None else f"port mark {vm.port_mark}"
            yield f"{vm.name}: {_ADDRESS_TAKEN.format(address) if address else _NO_ADDRESS}"
        elif binding is not None and binding.name != vm.name:
            yield f"{binding.name}: {_RENAMED.format(vm.name)}"


def _less(roster: Roster, before: Roster, left_out: Mapping[str, str]) -> Roster:
    """What could not be taken in is tried again with the next listing."""
    vms = {key: vm for key, vm in roster.vms.items() if key not in left_out}
    kept = {key: before.vms[key] for key in left_out if key in before.vms}
    return replace(roster, vms=vms | kept)


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
