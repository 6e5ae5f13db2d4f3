"""Collects what one transaction changes, for the `Commit` that listeners receive."""

from datetime import datetime

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Scope
from forewarned.core.transitions import Scheduled, Transition
from forewarned.service.records import Binding, Commit, PageContent, Saved
from forewarned.storage.diff import Delta, fold


class CommitBuilder:
    def __init__(self) -> None:
        self._scopes: dict[ScopeId, Saved] = {}
        self._shown: dict[ScopeId, None] = {}
        self._transitions: list[Transition] = []
        self._bound: dict[str, Binding] = {}
        self._unbound: dict[ResourceName, None] = {}
        self._is_for_publisher = False

    def created(self, scope: Scope, *, revision: int) -> Saved:
        saved = self._scopes[scope.id] = Saved(scope=scope, revision=revision)
        self._shown[scope.id] = None
        return saved

    def changed(self, before: Saved, delta: Delta) -> Saved:
        """The scope with its new revision: one step per transaction, however many saves."""
        scope, former = delta.scope, before.scope
        is_first = scope.id not in self._scopes
        saved = Saved(scope=scope, revision=before.revision + is_first)
        self._scopes[scope.id] = saved
        # Changes of VMs alone are in no document.
        is_moved = scope.incarnation != former.incarnation or scope.active != former.active
        if is_moved or scope.events != former.events:
            self._shown[scope.id] = None
        self._transitions += delta.transitions
        for name in delta.removed:
            self._bound.pop(fold(name), None)
            self._unbound[name] = None
        return saved

    def bound(self, binding: Binding) -> None:
        self._unbound.pop(binding.name, None)
        self._bound[fold(binding.name)] = binding

    def published(self) -> None:
        """There is something for the publisher to do."""
        self._is_for_publisher = True

    @property
    def moves_vms(self) -> bool:
        """Whether another VM may be the fleet's first."""
        return bool(self._bound or self._unbound)

    @property
    def publishes(self) -> bool:
        """Whether VMs are given notice of an event."""
        return any(isinstance(fact, Scheduled) for fact in self._transitions)

    @property
    def joined(self) -> set[ScopeId]:
        """The scopes that a VM was bound in."""
        return {binding.scope_id for binding in self._bound.values()}

    def commit(
        self,
        *,
        next_wake: datetime | None,
        first_vm: ResourceName | None,
        history_ids: tuple[int, ...] = (),
    ) -> Commit:
        return Commit(
            scopes=tuple(self._scopes.values()),
            shown=tuple([PageContent.of(self._scopes[scope_id]) for scope_id in self._shown]),
            transitions=tuple(self._transitions),
            history_ids=history_ids,
            bound=tuple(self._bound.values()),
            unbound=tuple(self._unbound),
            first_vm=first_vm,
            next_wake=next_wake,
            is_for_publisher=self._is_for_publisher,
        )
