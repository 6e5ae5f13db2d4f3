"""A plan compared with the existing fleet: what conflicts with it, and what has to be removed.

Known before anything is written, for a large plan is written in parts: no part of it may be refused
when others are done.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import ScopeKind
from forewarned.service.errors import AddressTakenError, NameTakenError
from forewarned.service.fleet.addresses import port_mark
from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.fleet.layout import ScopeLayout, VmLayout, layouts
from forewarned.service.fleet.placement import AddressesExhaustedError
from forewarned.service.fleet.plan import Expansion, free_addresses
from forewarned.service.fleet.validation import declaration_mistakes, layout_mistakes
from forewarned.service.records import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    expansion: Expansion
    size: int
    """How many VMs are planned."""
    gone: Mapping[ScopeId, tuple[ResourceName, ...]]
    """VMs to remove, by scope."""
    released: tuple[ResourceName, ...]
    """VMs that stay, but give up their addresses to others."""
    mixed: frozenset[str]
    """Scopes in which planned VMs join others, or may be moved to other hosts.

    Whether their VMs go together is yet to be seen.
    """

    @property
    def work(self) -> int:
        """In VMs to be written."""
        return self.size + sum(map(len, self.gone.values()))


class Present(NamedTuple):
    """The existing fleet."""

    places: Sequence[Place] = ()
    listed: frozenset[str] = frozenset()
    """Folded names of VMs that sources have brought, which no plan removes. Needed to prune."""


def compare(
    plan: FleetPlan, present: Present, *, address_range: Network, prune: bool
) -> Comparison:
    """Raises RefusalError if the plan has a mistake, or conflicts with the existing fleet."""
    for mistake in declaration_mistakes(plan):
        raise mistake.error
    survey = _Survey(plan, present, prune=prune)
    for mistake in layout_mistakes(survey.over(layouts(plan))):
        raise mistake.error
    addresses = survey.addresses()
    _refuse_too_few(plan, plan.address_range or address_range, survey.needed, kept=addresses)
    return Comparison(
        expansion=Expansion(plan, address_range=address_range, kept=addresses),
        size=plan.size(),
        gone=survey.gone() if prune else {},
        released=tuple(survey.released),
        mixed=frozenset(survey.mixed),
    )


class _Survey:
    """What one pass over the VMs of a plan finds out."""

    def __init__(self, plan: FleetPlan, present: Present, *, prune: bool) -> None:
        self._here = {place.name.casefold(): place for place in present.places}
        self._listed = present.listed
        self._prune = prune
        self._declared = frozenset(plan.declared_addresses())
        self._stay: set[str] = set()
        """Folded names of planned VMs that are in their places already."""
        self._planned: set[str] = set()
        """Folded names of planned VMs that exist, in other places too."""
        self._scopes = {place.scope_id for place in present.places}
        self._claimed: list[str] = []
        """Declared addresses of VMs that do not have them yet."""
        self.needed = 0
        """How many VMs need an address of the range."""
        self.released: list[ResourceName] = []
        self.mixed: set[str] = set()

    def over(self, planned: Iterable[ScopeLayout]) -> Iterator[ScopeLayout]:
        for layout in planned:
            staying = sum(self._sees(vm, layout.id) for vm in layout.vms)
            if staying < len(layout.vms) or any(vm.host is not None for vm in layout.vms):
                self._note_mixed(layout)
            yield layout
        self._refuse_held_addresses()

    def _note_mixed(self, layout: ScopeLayout) -> None:
        # One VM alone shares its host with no other of its scope.
        if layout.id in self._scopes and layout.kind is not ScopeKind.VIRTUAL_MACHINE:
            self.mixed.add(layout.id)

    def addresses(self) -> dict[str, str]:
        return {folded: place.address for folded, place in self._here.items()}

    def gone(self) -> dict[ScopeId, tuple[ResourceName, ...]]:
        leaving: dict[ScopeId, list[ResourceName]] = {}
        for folded, place in self._here.items():
            if folded not in self._stay and not self._is_listed(folded):
                leaving.setdefault(place.scope_id, []).append(place.name)
        return {scope_id: tuple(names) for scope_id, names in leaving.items()}

    def _is_listed(self, folded: str) -> bool:
        """Whether a source has brought it, and the plan does not declare it as well."""
        return folded in self._listed and folded not in self._planned

    def _sees(self, vm: VmLayout, scope_id: str) -> bool:
        """Whether this VM is in its place already."""
        address = vm.known_by
        folded = vm.name.casefold()
        place = self._here.get(folded)
        if address is not None and (place is None or place.address != address):
            self._claimed.append(address)
        if place is None:
            self.needed += address is None
            return False
        self._planned.add(folded)
        loses = place.address in self._declared and place.address != address
        has_address = place.address and port_mark(place.address) is None
        self.needed += address is None and (loses or not has_address)
        if (place.scope_id, place.name) != (scope_id, vm.name):
            if not self._prune:
                raise NameTakenError(vm.name, place.scope_id)
            return False
        self._stay.add(folded)
        if loses:
            self.released.append(place.name)
        return True

    def _refuse_held_addresses(self) -> None:
        if not self._claimed or (self._prune and not self._listed):
            return
        holders = {place.address: folded for folded, place in self._here.items()}
        for address in self._claimed:
            holder = holders.get(address)
            # One that is planned too gets another, and gives this one up first.
            if holder is None or holder in self._planned:
                continue
            if not self._prune or holder in self._listed:
                raise AddressTakenError(address, self._here[holder].name)


def _refuse_too_few(
    plan: FleetPlan, address_range: Network, needed: int, *, kept: Mapping[str, str]
) -> None:
    # Counting takes time, so it is left to the few cases in which it is close.
    if address_range.num_addresses - len(kept) - plan.size() >= 2 * needed:
        return
    free = free_addresses(plan, address_range, kept)
    if sum(1 for _ in islice(free, needed)) < needed:
        raise AddressesExhaustedError(str(address_range))
