"""Everything the service writes to SQLite."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

from notbefore.core.change import Change
from notbefore.core.errors import DuplicateEventError, UnknownResourceError
from notbefore.core.ids import ResourceName, ScopeId
from notbefore.core.model import Actor, Scope, ScopeKind
from notbefore.service.errors import AddressTakenError, NameTakenError
from notbefore.service.ports import Binding, Commit, Declaration, OperationRecord, Saved
from notbefore.storage import declared, delta, rows
from notbefore.storage.delta import Delta, fold
from notbefore.storage.kept import Kept
from notbefore.storage.rows import micros
from notbefore.storage.sqlite_snapshot import SqliteSnapshot
from notbefore.storage.tally import Tally

NextWake = Callable[[Scope], datetime | None]


_RECKONED: Final = "wakes reckoned with"
_READ_LONG_AGO: Final = Scope(
    id=ScopeId("any"),
    kind=ScopeKind.VIRTUAL_MACHINE,
    active=True,
    last_read_at=datetime(1970, 1, 1, tzinfo=UTC),
)

# What is never changed is not named where a row is changed: SQLite would write every index on it
# anew, and look for rows that refer to it.
_ADD_SCOPE: Final = """
    INSERT INTO scopes (id, folded, kind, revision, incarnation, active, last_read_at, next_wake,
                        policy, rounds)
    VALUES (:id, fold(:id), :kind, :revision, :incarnation, :active, :last_read_at, :next_wake,
            :policy, :rounds)
"""
_CHANGE_SCOPE: Final = """
    UPDATE scopes SET kind = :kind, revision = :revision, incarnation = :incarnation,
           active = :active, last_read_at = :last_read_at, next_wake = :next_wake,
           policy = :policy, rounds = :rounds
    WHERE id = :id
"""
_ADD_RESOURCE: Final = """
    INSERT INTO resources (folded, name, scope_id, position, update_domain, fault_domain, host,
                           state, priority, eviction_policy, terminate_notice)
    VALUES (:folded, :name, :scope_id,
            (SELECT coalesce(max(position) + 1, 0) FROM resources WHERE scope_id = :scope_id),
            :update_domain, :fault_domain, :host,
            :state, :priority, :eviction_policy, :terminate_notice)
"""
_CHANGE_RESOURCE: Final = """
    UPDATE resources SET update_domain = :update_domain, fault_domain = :fault_domain, host = :host,
           state = :state, priority = :priority, eviction_policy = :eviction_policy,
           terminate_notice = :terminate_notice
    WHERE folded = :folded
"""
_ADD_EVENT: Final = """
    INSERT INTO events (id, scope_id, type, status, source, resources, created_at, not_before,
                        description, duration, announced, approved_by, approved_at,
                        approved_by_policy, maintenance, started_at, start_cause, ended_at,
                        end_reason)
    VALUES (:id, :scope_id, :type, :status, :source, :resources, :created_at, :not_before,
            :description, :duration, :announced, :approved_by, :approved_at,
            :approved_by_policy, :maintenance, :started_at, :start_cause, :ended_at,
            :end_reason)
"""
_CHANGE_EVENT: Final = """
    UPDATE events SET status = :status, resources = :resources, not_before = :not_before,
           description = :description, duration = :duration, announced = :announced,
           approved_by = :approved_by, approved_at = :approved_at,
           approved_by_policy = :approved_by_policy, started_at = :started_at,
           start_cause = :start_cause
    WHERE id = :id
"""
_END_EVENT: Final = """
    UPDATE events SET status = :status, resources = :resources, not_before = :not_before,
           description = :description, duration = :duration, announced = :announced,
           approved_by = :approved_by, approved_at = :approved_at,
           approved_by_policy = :approved_by_policy, started_at = :started_at,
           start_cause = :start_cause, ended_at = :ended_at, end_reason = :end_reason
    WHERE id = :id
"""
_ADD_HISTORY: Final = """
    INSERT INTO history (at, actor, address, action, scope_id, event_id, event_type, resources,
                         cause)
    VALUES (:at, :actor, :address, :action, :scope_id, :event_id, :event_type, :resources, :cause)
"""


class SqliteTransaction(SqliteSnapshot):
    @override
    def __init__(
        self, connection: sqlite3.Connection, now: datetime, *, next_wake: NextWake, kept: Kept
    ) -> None:
        super().__init__(connection, now)
        self._wake_of = next_wake
        self._kept = kept
        self._tally = Tally()
        self._next_wake: datetime | None = None
        self.written: dict[ScopeId, Saved] = {}
        """Scopes as this work leaves them, for others to know once it has come to its end."""

    def exists(self, scope_id: ScopeId) -> bool:
        if scope_id in self.written or self._kept.find(scope_id) is not None:
            return True
        return self._one("SELECT 1 FROM scopes WHERE id = ?", scope_id) is not None

    def create(self, scope: Scope) -> None:
        delta.refuse_inhabited(scope)
        if self.exists(scope.id):
            raise ValueError(f"scope {scope.id!r} exists")
        self._put(_ADD_SCOPE, self._tally.created(scope))

    def save(self, change: Change, *, by: Actor) -> None:
        before = self._saved(change.scope.id)
        difference = delta.between(before.scope, change)
        if difference is None:
            return
        self._refuse_taken(difference)
        if change.scope.resources is not before.scope.resources:
            self._move_resources(difference)
        self._write_events(difference)
        if change.transitions:
            facts = delta.history(change.transitions, by=by, after=0)
            self._connection.executemany(_ADD_HISTORY, map(rows.from_history, facts))
        self._put(_CHANGE_SCOPE, self._tally.changed(before, difference))

    def bind(self, binding: Binding) -> None:
        folded = fold(binding.name)
        vm = self._one(
            "SELECT name FROM resources WHERE folded = ? AND scope_id = ?", folded, binding.scope_id
        )
        if vm is None:
            raise UnknownResourceError(binding.name)
        holder = self._one(
            "SELECT name FROM resources WHERE address = ? AND folded <> ?", binding.address, folded
        )
        if holder is not None:
            raise AddressTakenError(binding.address, holder["name"])
        binding = replace(binding, name=ResourceName(vm["name"]))
        if self.binding(binding.name) == binding:
            return
        self._connection.execute(
            "UPDATE resources SET address = :address, profile = :profile WHERE folded = :folded",
            rows.from_binding(binding),
        )
        self._tally.bound(binding)

    def put_note(self, key: str, value: str) -> None:
        self._connection.execute(
            "INSERT INTO notes VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def declare(self, declaration: Declaration) -> None:
        declared.declare(self._connection, declaration)

    def withdraw(self, path: str) -> None:
        declared.withdraw(self._connection, path)

    def open_operation(self, operation: OperationRecord) -> None:
        declared.open_operation(self._connection, operation, now=self.now)

    def record(self, action: str, *, by: Actor, cause: str) -> None:
        row = delta.remark(action, at=self.now, by=by, cause=cause, after=0)
        self._connection.execute(_ADD_HISTORY, rows.from_history(row))

    def correct_wakes(self) -> None:
        """Reckon every scope's wake anew, if the rules differ from those of the last run.

        A wake left too early would fall due again and again, for nothing is to be done then.
        """
        # Rules are in a wake as the silence they allow, and nowhere else: this scope shows it.
        rule = str(micros(self._wake_of(_READ_LONG_AGO)))
        if self.note(_RECKONED) == rule:
            return
        for saved in self.scopes():
            self._connection.execute(
                "UPDATE scopes SET next_wake = :wake WHERE id = :id AND next_wake IS NOT :wake",
                {"wake": micros(self._wake_of(saved.scope)), "id": saved.scope.id},
            )
        self.put_note(_RECKONED, rule)

    def end(self, *, next_wake: datetime | None) -> None:
        """The works of a group end together, so they share what is due next."""
        self._next_wake = next_wake

    def commit(self) -> Commit:
        return self._tally.commit(next_wake=self._next_wake)

    @override
    def _saved(self, scope_id: ScopeId) -> Saved:
        saved = self.written.get(scope_id) or self._kept.find(scope_id)
        if saved is None:
            saved = super()._saved(scope_id)
            self._kept.loaded(saved)
        return saved

    def _put(self, statement: str, saved: Saved) -> None:
        next_wake = self._wake_of(saved.scope)
        self._connection.execute(statement, rows.from_saved(saved, next_wake=next_wake))
        self.written[saved.scope.id] = saved

    def _refuse_taken(self, difference: Delta) -> None:
        here = difference.scope.id
        for vm in difference.added:
            owner = self._one(
                "SELECT scope_id FROM resources WHERE folded = ? AND scope_id <> ?",
                fold(vm.name),
                here,
            )
            if owner is not None:
                raise NameTakenError(vm.name, owner["scope_id"])
        for event_id in difference.opened:
            if self.event(event_id) is not None:
                raise DuplicateEventError(event_id)

    def _move_resources(self, difference: Delta) -> None:
        scope_id = difference.scope.id
        execute_many = self._connection.executemany
        # Looked at first: a statement with nothing to do takes nearly as long as one for one VM.
        if difference.removed:
            execute_many(
                "DELETE FROM resources WHERE folded = ?",
                ((fold(name),) for name in difference.removed),
            )
        if difference.added:
            execute_many(
                _ADD_RESOURCE, (rows.from_resource(vm, scope_id) for vm in difference.added)
            )
        if difference.changed:
            execute_many(
                _CHANGE_RESOURCE, (rows.from_resource(vm, scope_id) for vm in difference.changed)
            )
        if difference.order:
            execute_many(
                "UPDATE resources SET position = ? WHERE folded = ?",
                ((place, fold(name)) for place, name in enumerate(difference.order)),
            )

    def _write_events(self, difference: Delta) -> None:
        new = frozenset(difference.opened)
        for record in difference.records:
            statement = _CHANGE_EVENT if record.ended_at is None else _END_EVENT
            if record.event.id in new:
                statement = _ADD_EVENT
            self._connection.execute(statement, rows.from_record(record))
