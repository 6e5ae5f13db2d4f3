"""Everything the service writes to SQLite."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Final

from typing_extensions import override

from notbefore.core.change import Change
from notbefore.core.errors import DuplicateEventError, UnknownResourceError
from notbefore.core.ids import ResourceName, ScopeId
from notbefore.core.model import Actor, Scope
from notbefore.service.errors import AddressTakenError, NameTakenError
from notbefore.service.ports import Binding, Commit, Saved
from notbefore.storage import delta, rows
from notbefore.storage.delta import Delta, fold
from notbefore.storage.rows import Value, micros
from notbefore.storage.sqlite_snapshot import SqliteSnapshot
from notbefore.storage.tally import Tally

NextWake = Callable[[Scope], datetime | None]


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


class SqliteTransaction(SqliteSnapshot):
    @override
    def __init__(self, connection: sqlite3.Connection, now: datetime, next_wake: NextWake) -> None:
        super().__init__(connection, now)
        self._wake_of = next_wake
        self._tally = Tally()
        self._kept: dict[ScopeId, Saved] = {}
        """Scopes as they are in the database. There is one writer, so they stay true."""

    def exists(self, scope_id: ScopeId) -> bool:
        return self._one("SELECT 1 FROM scopes WHERE id = ?", scope_id) is not None

    def create(self, scope: Scope) -> None:
        delta.refuse_inhabited(scope)
        if self.exists(scope.id):
            raise ValueError(f"scope {scope.id!r} exists")
        self._put(self._tally.created(scope))

    def save(self, change: Change, *, by: Actor) -> None:
        before = self._saved(change.scope.id)
        difference = delta.between(before.scope, change)
        if difference is None:
            return
        self._refuse_taken(difference)
        self._move_resources(difference)
        for record in difference.records:
            self._upsert("events", rows.from_record(record))
        for row in delta.history(change.transitions, by=by, after=self._last_history_id()):
            self._insert("history", rows.from_history(row))
        self._put(self._tally.changed(before, difference))

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
        self._upsert("notes", {"key": key, "value": value}, by="key")

    def correct_wakes(self) -> None:
        """Reckon every scope's wake anew: the rules may differ from those of the last run.

        A wake left too early would fall due again and again, for nothing is to be done then.
        """
        kept = {row["id"]: row["next_wake"] for row in self._all("SELECT * FROM scopes")}
        for saved in self.scopes():
            if micros(self._wake_of(saved.scope)) != kept[saved.scope.id]:
                self._put(saved)

    def commit(self) -> Commit:
        return self._tally.commit(next_wake=self.next_wake())

    @override
    def _saved(self, scope_id: ScopeId) -> Saved:
        if scope_id not in self._kept:
            self._kept[scope_id] = super()._saved(scope_id)
        return self._kept[scope_id]

    def _put(self, saved: Saved) -> None:
        next_wake = self._wake_of(saved.scope)
        self._upsert("scopes", rows.from_saved(saved, next_wake=next_wake))
        self._kept[saved.scope.id] = saved

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
        execute_many(
            "DELETE FROM resources WHERE folded = ?", ((fold(name),) for name in difference.removed)
        )
        execute_many(_ADD_RESOURCE, (rows.from_resource(vm, scope_id) for vm in difference.added))
        execute_many(
            _CHANGE_RESOURCE, (rows.from_resource(vm, scope_id) for vm in difference.changed)
        )
        execute_many(
            "UPDATE resources SET position = ? WHERE folded = ?",
            ((place, fold(name)) for place, name in enumerate(difference.order)),
        )

    def _insert(self, table: str, row: dict[str, Value]) -> None:
        self._connection.execute(_insert_statement(table, tuple(row)), row)

    def _upsert(self, table: str, row: dict[str, Value], *, by: str = "id") -> None:
        self._connection.execute(_upsert_statement(table, tuple(row), by), row)

    def _last_history_id(self) -> int:
        row = self._one("SELECT seq FROM sqlite_sequence WHERE name = 'history'")
        return 0 if row is None else int(row["seq"])


@cache
def _insert_statement(table: str, columns: tuple[str, ...]) -> str:
    values = ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"


@cache
def _upsert_statement(table: str, columns: tuple[str, ...], key: str) -> str:
    updates = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return f"{_insert_statement(table, columns)} ON CONFLICT ({key}) DO UPDATE SET {updates}"
