"""Which lanes the timeline has, and in which order: the next event to start is in the first.

Pure. A scale set's placement groups share a lane, unless the visitor has opened it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from forewarned.console.names import natural
from forewarned.core.ids import ScopeId
from forewarned.core.model import EventStatus
from forewarned.service.records import EventRecord

_PLACEMENT_GROUP: Final = "vmss/"
_PARTS_OF_GROUP: Final = 3
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class Heading(NamedTuple):
    """What a lane is of, and where its name leads."""

    key: str
    """Its name in the page: a scope, or a scale set, and none twice."""
    href: str
    groups: int = 0
    """Placement groups that share the lane, or that stand below it where it is open."""
    is_open: bool = False
    is_member: bool = False
    """Whether it is a placement group below its scale set."""


class Planned(NamedTuple):
    """A lane that is to be drawn."""

    heading: Heading
    records: Sequence[EventRecord]
    """Empty where only the name is drawn."""


class Addresses(NamedTuple):
    """Where the names of lanes lead."""

    of_scope: Callable[[ScopeId], str]
    of_set: Callable[[str], str]
    """Opens a scale set that is folded, and folds one that is open."""


def scale_set_of(scope_id: ScopeId) -> str | None:
    """The scale set a placement group belongs to, as lanes name it; None for other scopes."""
    parts = scope_id.split("/")
    is_group = scope_id.startswith(_PLACEMENT_GROUP) and len(parts) == _PARTS_OF_GROUP
    return "/".join(parts[:2]) if is_group else None


def planned(
    records: Iterable[EventRecord], *, opened: Collection[str], folds: bool, lead: Addresses
) -> list[Planned]:
    by_scope: defaultdict[ScopeId, list[EventRecord]] = defaultdict(list)
    for record in records:
        by_scope[record.scope_id].append(record)
    sets: dict[str, list[ScopeId]] = {}
    for scope_id in by_scope:
        name = scale_set_of(scope_id) if folds else None
        sets.setdefault(name or scope_id, []).append(scope_id)
    lanes: list[Planned] = []
    for name, scope_ids in sorted(sets.items(), key=lambda each: _rank(each[0], each[1], by_scope)):
        if len(scope_ids) == 1:
            [scope_id] = scope_ids
            heading = Heading(key=scope_id, href=lead.of_scope(scope_id))
            lanes.append(Planned(heading, by_scope[scope_id]))
        elif name in opened:
            lanes += _open(name, scope_ids, by_scope, lead)
        else:
            together = [record for scope_id in scope_ids for record in by_scope[scope_id]]
            heading = Heading(key=name, href=lead.of_set(name), groups=len(scope_ids))
            lanes.append(Planned(heading, together))
    return lanes


def _open(
    name: str,
    scope_ids: Sequence[ScopeId],
    by_scope: dict[ScopeId, list[EventRecord]],
    lead: Addresses,
) -> list[Planned]:
    heading = Heading(key=name, href=lead.of_set(name), groups=len(scope_ids), is_open=True)
    in_order = sorted(scope_ids, key=lambda one: _rank(one, [one], by_scope))
    return [
        Planned(heading, ()),
        *(
            Planned(
                Heading(key=scope_id, href=lead.of_scope(scope_id), is_member=True),
                by_scope[scope_id],
            )
            for scope_id in in_order
        ),
    ]


def _rank(
    name: str, scope_ids: Iterable[ScopeId], by_scope: dict[ScopeId, list[EventRecord]]
) -> tuple[int, datetime, object]:
    """By the next to start; then what has started; then what is over; otherwise by name."""
    of_lane = (record for scope_id in scope_ids for record in by_scope[scope_id])
    is_open, waits_until = False, _NEVER
    for record in of_lane:
        if record.ended_at is None:
            is_open, event = True, record.event
            if event.status is EventStatus.SCHEDULED and event.not_before is not None:
                waits_until = min(waits_until, event.not_before)
    if waits_until is not _NEVER:
        return 0, waits_until, natural(name)
    return 1 if is_open else 2, _NEVER, natural(name)
