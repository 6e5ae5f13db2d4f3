"""The few names that best match what is typed, whatever the size of the fleet.

Pieces of pages, for the script that shows them beneath a field. Without it the field is one to type
into like any other.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from forewarned.console.context import Visit
from forewarned.core.model import ScopeKind
from forewarned.service.ports import Snapshot

SHOWN: Final = 10
SETS: Final = frozenset(ScopeKind) - {ScopeKind.VIRTUAL_MACHINE}
"""Kinds of scopes that have more than one VM."""
_LONGEST: Final = 200
"""Characters of what is looked for: no name has more."""


class Suggestion(NamedTuple):
    name: str
    about: str = ""
    """What tells it from others."""


def _vms(snapshot: Snapshot, text: str) -> list[Suggestion]:
    found = snapshot.vms_like(text, limit=SHOWN + 1)
    return [Suggestion(vm.name, f"{vm.scope_id}, on {vm.host}") for vm in found]


def _scopes(snapshot: Snapshot, text: str) -> list[Suggestion]:
    kinds = frozenset(ScopeKind)
    return [Suggestion(id_) for id_ in snapshot.scopes_like(text, kinds=kinds, limit=SHOWN + 1)]


def _sets(snapshot: Snapshot, text: str) -> list[Suggestion]:
    return [Suggestion(id_) for id_ in snapshot.scopes_like(text, kinds=SETS, limit=SHOWN + 1)]


def _hosts(snapshot: Snapshot, text: str) -> list[Suggestion]:
    hosts = snapshot.hosts_like(text, limit=SHOWN + 1)
    counts = {host.name: host.vms for host in snapshot.host_summaries(hosts)}
    return [Suggestion(host, _counted(counts.get(host, 0))) for host in hosts]


def _any(snapshot: Snapshot, text: str) -> list[Suggestion]:
    """Of whatever kind, those that begin so before all others."""
    found = [*_sets(snapshot, text), *_vms(snapshot, text), *_hosts(snapshot, text)]
    folded = text.casefold()
    return sorted(found, key=lambda each: not each.name.casefold().startswith(folded))


_LOOK: Final[Mapping[str, Callable[[Snapshot, str], list[Suggestion]]]] = {
    "vms": _vms,
    "scopes": _scopes,
    "sets": _sets,
    "hosts": _hosts,
    "any": _any,
}


async def suggest(visit: Visit) -> Response:
    look = _LOOK.get(visit.named("what"))
    if look is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    text = visit.query.text("like")[:_LONGEST]
    found = await visit.ask(lambda snapshot: look(snapshot, text))
    return visit.page(
        "suggestions.html",
        text=text,
        suggestions=found[:SHOWN],
        has_more=len(found) > SHOWN,
    )


def _counted(vms: int) -> str:
    return f"{vms} VM{'' if vms == 1 else 's'}"
