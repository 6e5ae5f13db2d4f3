"""A transaction whose rows other sessions wait for, from when they are loaded until it ends."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from typing_extensions import override

from forewarned.core.change import Change
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, Scope
from forewarned.core.tasks import ActuatorOf, Task
from forewarned.service.drains.model import Drain
from forewarned.service.records import Binding, Commit, Declaration
from forewarned.service.subscriptions.model import Message
from forewarned.storage.diff import fold
from forewarned.storage.relational.changes import Written
from forewarned.storage.relational.transaction import (
    NextWake,
    Publishing,
    RelationalTransaction,
)
from forewarned.storage.relational.write_buffer import WriteBuffer
from forewarned.storage.rows import micros
from forewarned.storage.sqlite.scope_cache import ScopeCache
from forewarned.storage.sqlite.writes import SqliteTransaction
from tests.simulation.store.locks import Key, LockedError

Hold = Callable[[Key], None]
"""Locks a row. Raises LockedError."""
IsFree = Callable[[Key], bool]


def scope_key(scope_id: ScopeId) -> Key:
    return Key("scope", scope_id)


class SimulatedTransaction(SqliteTransaction):
    @override
    def __init__(
        self,
        buffer: WriteBuffer,
        now: datetime,
        *,
        next_wake: NextWake,
        actuator_of: ActuatorOf,
        publishing: Publishing,
        offset: int,
        hold: Hold,
        is_free: IsFree,
    ) -> None:
        super().__init__(
            buffer,
            now,
            next_wake=next_wake,
            actuator_of=actuator_of,
            publishing=publishing,
            cache=ScopeCache(),
            first_incarnation=offset,
        )
        self._hold = hold
        self._is_free = is_free

    @override
    def _publish(self, messages: Iterable[Message]) -> Sequence[Written]:
        """By the outbox, as where nodes share a store."""
        return RelationalTransaction._publish(self, messages)

    @override
    def load(self, scope_id: ScopeId) -> Scope:
        self._hold(scope_key(scope_id))
        return super().load(scope_id)

    @override
    def load_all(self, scope_ids: Collection[ScopeId]) -> list[Scope]:
        # All of them are wanted by the next run, not only the first that another has.
        taken = [key for key in map(scope_key, scope_ids) if not _is_held(self._hold, key)]
        if taken:
            raise LockedError(taken)
        return super().load_all(scope_ids)

    @override
    def claim_due(self, limit: int) -> list[ScopeId]:
        """Those that another session has locked are left to it."""
        found = self._ids(
            "SELECT id FROM scopes WHERE next_wake <= ? ORDER BY next_wake, id", micros(self.now)
        )
        due = [each for each in found if self._is_free(scope_key(each))][:limit]
        for each in due:
            self._hold(scope_key(each))
        self._claimed.update(due)
        return due

    @override
    def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        for scope_id in marks:
            self._hold(scope_key(scope_id))
        super().mark_read(marks, older_by=older_by)

    @override
    def note(self, key: str) -> str | None:
        self._hold(Key("note", key))
        return super().note(key)

    @override
    def declaration(self, path: str) -> Declaration | None:
        self._hold(Key("declaration", fold(path)))
        return super().declaration(path)

    @override
    def lock_drain(self, host: HostName) -> Drain | None:
        self._hold(Key("drain", host))
        return super().lock_drain(host)

    @override
    def lock_publishing(self) -> None:
        self._hold(Key("publishing", ""))
        super().lock_publishing()

    @override
    def bind_all(self, bindings: Collection[Binding]) -> list[ResourceName]:
        for binding in bindings:
            self._hold(Key("vm", fold(binding.name)))
        return super().bind_all(bindings)

    @override
    def enroll(
        self, changes: Collection[Change], bindings: Collection[Binding], *, by: Actor
    ) -> list[ResourceName]:
        for binding in bindings:
            self._hold(Key("vm", fold(binding.name)))
        return super().enroll(changes, bindings, by=by)

    @override
    def tasks_of(self, event_ids: Collection[EventId]) -> list[Task]:
        for event_id in event_ids:
            self._hold(Key("tasks", event_id))
        return super().tasks_of(event_ids)

    @override
    def claimable_tasks(self, actuator: str, *, limit: int) -> list[Task]:
        found = super().claimable_tasks(actuator, limit=limit)
        free = [task for task in found if self._is_free(Key("tasks", task.event_id))]
        for task in free:
            self._hold(Key("tasks", task.event_id))
        return free

    @override
    def chain_history(self, limit: int) -> int:
        if not self._is_free(Key("chain", "")):
            return 0
        self._hold(Key("chain", ""))
        return super().chain_history(limit)

    def take_lease(self, name: str, holder: str, length: timedelta) -> int | None:
        """As a note, where PostgreSQL has a table."""
        token, until = self._lease(name)
        if until > self.now:
            return None
        self._put_lease(name, token + 1, length)
        return token + 1

    def renew_lease(self, name: str, token: int, length: timedelta) -> bool:
        newest, _ = self._lease(name)
        if newest != token:
            return False
        self._put_lease(name, token, length)
        return True

    def _lease(self, name: str) -> tuple[int, datetime]:
        """Its newest token, and until when that holds."""
        note = self.note(f"lease {name}") or f"0 {self.now.isoformat()}"
        token, _, until = note.partition(" ")
        return int(token), datetime.fromisoformat(until)

    def _put_lease(self, name: str, token: int, length: timedelta) -> None:
        self.put_note(f"lease {name}", f"{token} {(self.now + length).isoformat()}")

    @property
    def publishes(self) -> bool:
        """Whether an event has been scheduled."""
        return self._builder.publishes

    @override
    def commit(self) -> Commit:
        """Without what no node can say while others commit."""
        return self._builder.commit(next_wake=None, first_vm=None)


def _is_held(hold: Hold, key: Key) -> bool:
    try:
        hold(key)
    except LockedError:
        return False
    return True
