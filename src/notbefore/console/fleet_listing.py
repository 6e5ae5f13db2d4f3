"""A page of the list of scopes: which there are, and as much of each as the page shows.

The rule that must stay true: of a large fleet a page loads its own scopes and no others, since it
is loaded again after every change, for everybody who has it open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from notbefore.core.ids import ScopeId
from notbefore.core.model import Scope
from notbefore.service.fleet import ScopeView
from notbefore.service.ports import Snapshot

PER_PAGE: Final = 50
DRAWN: Final = 300
"""VMs that a page draws; the page of a scope draws all it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPage:
    found: int
    """Scopes in all, on whatever page."""
    views: tuple[ScopeView, ...]
    """Those that are not drawn are without the places of their VMs."""
    drawn: frozenset[ScopeId]

    @property
    def pages(self) -> int:
        return -(-self.found // PER_PAGE)


def listed(snapshot: Snapshot, *, wanted: str, page: int) -> FleetPage:
    """Pages are counted from 1. Without a wish, all scopes."""
    ids = _found(snapshot, wanted) if wanted else snapshot.scope_ids("")
    scopes = [snapshot.load(each) for each in ids[(page - 1) * PER_PAGE : page * PER_PAGE]]
    drawn = _drawn(scopes)
    return FleetPage(
        found=len(ids),
        views=tuple(_view(snapshot, scope, is_drawn=scope.id in drawn) for scope in scopes),
        drawn=drawn,
    )


def _found(snapshot: Snapshot, wanted: str) -> list[ScopeId]:
    """By part of the name of a scope, or of a VM in it or a host under it."""
    folded = wanted.casefold()
    here = {place.scope_id for place in snapshot.places() if folded in place.name.casefold()}
    for host in snapshot.hosts():
        if folded in host.casefold():
            here.update(snapshot.scopes_on(host))
    return [
        scope_id
        for scope_id in snapshot.scope_ids("")
        if scope_id in here or folded in scope_id.casefold()
    ]


def _drawn(scopes: Sequence[Scope]) -> frozenset[ScopeId]:
    """The first ones, as far as their VMs can be taken in at a glance."""
    drawn: set[ScopeId] = set()
    left = DRAWN
    for scope in scopes:
        left -= len(scope.resources)
        if left < 0:
            break
        drawn.add(scope.id)
    return frozenset(drawn)


def _view(snapshot: Snapshot, scope: Scope, *, is_drawn: bool) -> ScopeView:
    bindings = (snapshot.binding(name) for name in scope.resources) if is_drawn else ()
    return ScopeView(scope=scope, bindings=tuple(b for b in bindings if b is not None))
