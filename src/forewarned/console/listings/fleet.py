"""A page of the list of scopes: a row for each, with counts, and the VMs that were looked for.

Invariant: of a large fleet a page counts its own scopes and loads none, since it is made again
after every change, in every browser that has it open.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Self

from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.listings import ScopeSummary
from forewarned.service.ports import Snapshot

PER_PAGE: Final = 50
NAMED: Final = 3
"""VMs of a scope that its row names; its page draws all it has."""
FOUND: Final = 8
"""VMs of a scope that its row names where they were looked for."""
_HOSTS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRow:
    summary: ScopeSummary
    vms: tuple[ResourceName, ...]
    """The first ones that were looked for, or else the first ones."""
    is_found: bool
    """Whether those are the ones that were looked for."""
    has_more: bool
    """Whether there are more like them."""
    last_read_at: datetime | None = None
    last_read_by: ResourceName | None = None

    def with_last_read(self, reading: Activation) -> Self:
        """With the readings that the store has not heard of yet."""
        return replace(
            self,
            last_read_at=reading.last_read(self.summary),
            last_read_by=reading.last_reader(self.summary),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPage:
    found: int
    """Scopes in all, on whatever page."""
    rows: tuple[ScopeRow, ...]
    hosts: tuple[HostName, ...]
    """The first ones that are named like what was looked for."""

    @property
    def pages(self) -> int:
        return -(-self.found // PER_PAGE)


def listed(snapshot: Snapshot, *, wanted: str, page: int) -> FleetPage:
    """Pages are counted from 1. If `wanted` is empty, all scopes."""
    listing = snapshot.scope_listing(wanted, offset=(page - 1) * PER_PAGE, limit=PER_PAGE)
    ids = [scope.id for scope in listing.scopes]
    looked_for = snapshot.vms_like_in(ids, wanted, limit=FOUND + 1) if wanted else {}
    others = [scope_id for scope_id in ids if scope_id not in looked_for]
    first = snapshot.vms_like_in(others, "", limit=NAMED + 1)
    return FleetPage(
        found=listing.found,
        rows=tuple(_row(scope, looked_for.get(scope.id), first) for scope in listing.scopes),
        hosts=tuple(snapshot.hosts_like(wanted, limit=_HOSTS)) if wanted else (),
    )


def _row(
    scope: ScopeSummary,
    found: list[ResourceName] | None,
    first: dict[ScopeId, list[ResourceName]],
) -> ScopeRow:
    names, most = (found, FOUND) if found else (first.get(scope.id, []), NAMED)
    return ScopeRow(
        summary=scope,
        vms=tuple(names[:most]),
        is_found=bool(found),
        has_more=len(names) > most,
    )
