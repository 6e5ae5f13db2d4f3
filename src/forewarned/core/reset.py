"""A scope as if nothing had happened to it yet: for emulators, between two tests.

Invariant: the incarnation never falls (I7). VMs that have read the document go on reading it.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from forewarned.core.change import Change, ended, published
from forewarned.core.copying import replace
from forewarned.core.ids import ResourceName
from forewarned.core.model import Scope
from forewarned.core.transitions import Deactivated, ResourceRemoved

REASON: Final = "the emulator was reset"


def clear(scope: Scope, *, leaving: Collection[ResourceName], now: datetime) -> Change:
    """End every event, forget that any VM has read the document, and let VMs leave."""
    change = Change(scope=replace(scope, rounds=None))
    for event in scope.events.values():
        change = change.plus(ended(change.scope, event, reason=REASON, now=now))
    if scope.active:
        asleep = replace(change.scope, active=False, last_read_at=None)
        fact = Deactivated(scope_id=scope.id, at=now)
        change = change.plus(Change(scope=asleep, transitions=(fact,)))
    staying = {name: vm for name, vm in scope.resources.items() if name not in leaving}
    gone = [ResourceRemoved(scope_id=scope.id, at=now, resource=name) for name in leaving]
    left = Change(scope=replace(change.scope, resources=staying), transitions=tuple(gone))
    return published(scope, change.plus(left))
