"""Scopes as the database has them, cached so that they need not be loaded again.

A lock makes sure that a database has one writer, so what was loaded or written stays true.
Invariant: uncommitted scopes are visible only to functions of their own group.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from forewarned.core.ids import ScopeId
from forewarned.service.records import Saved

_LIMIT: Final = 64_000
"""VMs, events and scopes, some 300 bytes each: a fraction of a large fleet, all of a small one."""


class ScopeCache:
    def __init__(self, *, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._weight = 0
        self._scopes: OrderedDict[ScopeId, Saved] = OrderedDict()
        """The longest unused first."""
        self._drafts: dict[ScopeId, Saved] = {}
        """Written by functions of a group that is not committed yet."""

    def find(self, scope_id: ScopeId) -> Saved | None:
        draft = self._drafts.get(scope_id)
        if draft is not None:
            return draft
        saved = self._scopes.get(scope_id)
        if saved is not None:
            self._scopes.move_to_end(scope_id)
        return saved

    def loaded(self, saved: Saved) -> None:
        """A scope as committed: no function of this group has written it."""
        self._put(saved)

    def written(self, scopes: Mapping[ScopeId, Saved]) -> None:
        """By a function that has succeeded. One that fails has written nothing."""
        self._drafts.update(scopes)

    def committed(self) -> None:
        for saved in self._drafts.values():
            self._put(saved)
        self._drafts.clear()

    def forget(self) -> None:
        """After a failed commit: only the database knows what is in it."""
        self._scopes.clear()
        self._drafts.clear()
        self._weight = 0

    def _put(self, saved: Saved) -> None:
        former = self._scopes.pop(saved.scope.id, None)
        if former is not None:
            self._weight -= _weight(former)
        self._scopes[saved.scope.id] = saved
        self._weight += _weight(saved)
        while self._weight > self._limit:
            _, oldest = self._scopes.popitem(last=False)
            self._weight -= _weight(oldest)


def _weight(saved: Saved) -> int:
    return 1 + len(saved.scope.resources) + len(saved.scope.events)
