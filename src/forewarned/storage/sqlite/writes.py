"""Everything the service writes to SQLite."""

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

from forewarned.core.change import Change
from forewarned.core.copying import replace
from forewarned.core.errors import DuplicateEventError, UnknownResourceError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Actor, Scope, ScopeKind
from forewarned.service import restoration
from forewarned.service.errors import AddressTakenError, NameTakenError
from forewarned.service.listings import HistoryFilter
from forewarned.service.records import (
    Binding,
    Commit,
    Declaration,
    EventRecord,
    OperationRecord,
    Saved,
)
from forewarned.storage import diff, rows
from forewarned.storage.commit_builder import CommitBuilder
from forewarned.storage.diff import Delta, fold
from forewarned.storage.rows import Row, micros
from forewarned.storage.sqlite import declarations
from forewarned.storage.sqlite.reads import SqliteSnapshot
from forewarned.storage.sqlite.scope_cache import ScopeCache
from forewarned.storage.sqlite.statements import (
    ADD_EVENT,
    ADD_HISTORY,
    ADD_RESOURCE,
    ADD_SCOPE,
    END_EVENT,
    LEAVE_SCOPE,
    MODEL_RESOURCE,
    MOVE_EVENT,
    MOVE_RESOURCE,
    MOVE_SCOPE,
    PLACE_RESOURCE,
    PLAN_SCOPE,
    REMOVE_RESOURCE,
    WORD_EVENT,
)
from forewarned.storage.sqlite.write_buffer import WriteBuffer

NextWake = Callable[[Scope], datetime | None]
Written = tuple[str, Row]
"""A statement, and a row for it."""


_SERVER: Final = Actor(name="server")
_RECKONED: Final = "wakes reckoned with"
_READ_LONG_AGO: Final = Scope(
    id=ScopeId("any"),
    kind=ScopeKind.VIRTUAL_MACHINE,
    active=True,
    last_read_at=datetime(1970, 1, 1, tzinfo=UTC),
)


class SqliteTransaction(SqliteSnapshot):
    @override
    def __init__(
        self,
        connection: sqlite3.Connection,
        now: datetime,
        *,
        next_wake: NextWake,
        cache: ScopeCache,
        buffer: WriteBuffer,
        first_incarnation: int = 0,
    ) -> None:
        """`first_incarnation` is added to those of new scopes."""
        super().__init__(connection, now)
        self._first_incarnation = first_incarnation
        self._buffer = buffer
        self._wake_of = next_wake
        self._cache = cache
        self._builder = CommitBuilder()
        self._next_wake: datetime | None = None
        self._first_vm: ResourceName | None = None
        self.written: dict[ScopeId, Saved] = {}
        """Scopes as this function leaves them, for others to see once it has succeeded."""
        self._records: dict[EventId, EventRecord] = {}
        """Events as this function leaves them."""

    @property
    @override
    def _connection(self) -> sqlite3.Connection:
        return self._buffer.to_ask()

    @override
    def event(self, event_id: EventId) -> EventRecord | None:
        # Mostly what was just saved, which would have to be written to the database first.
        return self._records.get(event_id) or super().event(event_id)

    def exists(self, scope_id: ScopeId) -> bool:
        if scope_id in self.written or self._cache.find(scope_id) is not None:
            return True
        return self._one("SELECT 1 FROM scopes WHERE id = ?", scope_id) is not None

    def create(self, scope: Scope) -> None:
        diff.refuse_inhabited(scope)
        if self.exists(scope.id):
            raise ValueError(f"scope {scope.id!r} exists")
        if self._first_incarnation:
            # The scope may have existed before a restore, and its VMs may still compare.
            scope = replace(scope, incarnation=scope.incarnation + self._first_incarnation)
        saved = self._builder.created(scope)
        row = rows.new_scope(saved, next_wake=self._wake_of(scope))
        self._buffer.to_write().execute(ADD_SCOPE, row)
        self.written[scope.id] = saved

    def save(self, change: Change, *, by: Actor) -> None:
        before = self._saved(change.scope.id)
        difference = diff.between(before.scope, change)
        if difference is None:
            return
        self._refuse_taken(difference)
        if change.scope.resources is not before.scope.resources:
            self._move_resources(difference)
        saved = self._builder.changed(before, difference)
        self._buffer.add(
            change.scope.id,
            [
                *_of_resources(before.scope, difference),
                *_of_events(before.scope, difference),
                *_of_history(change, by),
                *_of_scope(before.scope, saved, next_wake=self._wake_of(change.scope)),
            ],
        )
        self.written[change.scope.id] = saved
        self._records.update((record.event.id, record) for record in difference.records)

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
        self._buffer.to_write().execute(
            "UPDATE resources SET address = :address, profile = :profile WHERE folded = :folded",
            rows.from_binding(binding),
        )
        self._builder.bound(binding)

    def put_note(self, key: str, value: str) -> None:
        self._buffer.to_write().execute(
            "INSERT INTO notes VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def declare(self, declaration: Declaration) -> None:
        declarations.declare(self._buffer.to_write(), declaration)

    def withdraw(self, path: str) -> None:
        declarations.withdraw(self._buffer.to_write(), path)

    def open_operation(self, operation: OperationRecord) -> None:
        declarations.open_operation(self._buffer.to_write(), operation, now=self.now)

    def record(self, action: str, *, by: Actor, cause: str) -> None:
        row = diff.remark(action, at=self.now, by=by, cause=cause, after=0)
        self._buffer.to_write().execute(ADD_HISTORY, rows.from_history(row))

    def correct_wakes(self) -> None:
        """Compute every scope's wake again, if the rules differ from those of the last run.

        A wake that is too early would fall due again and again, with nothing to do.
        """
        # A wake depends on the rules only by the silence they allow: this scope shows that.
        rule = str(micros(self._wake_of(_READ_LONG_AGO)))
        if self.note(_RECKONED) == rule:
            return
        for saved in self.scopes():
            self._buffer.to_write().execute(
                "UPDATE scopes SET next_wake = :wake WHERE id = :id AND next_wake IS NOT :wake",
                {"wake": micros(self._wake_of(saved.scope)), "id": saved.scope.id},
            )
        self.put_note(_RECKONED, rule)

    def incarnation_offset(self) -> int:
        return int(self.note(restoration.OFFSET) or 0)

    def mark_restored(self, reason: str, *, now: datetime) -> None:
        """Raise all incarnations above any that were ever shown, and record that in the history.

        Only for the first transaction after opening, while no scope is cached. `now` is real time.
        """
        before = self.incarnation_offset()
        offset = restoration.next_offset(before, now=now)
        # Revisions too: a Board that still shows an old page must take the new one for newer.
        self._buffer.to_write().execute(
            "UPDATE scopes SET incarnation = incarnation + :by, revision = revision + :by",
            {"by": offset - before},
        )
        # The server's clock may still be behind the history, which must not go back in time.
        newest = [row.at for row in self.history(HistoryFilter(limit=1))]
        at = max([self.now, *newest])
        self.put_note(restoration.OFFSET, str(offset))
        self.put_note(restoration.RESTORED_AT, at.isoformat())
        cause = f"{reason}: incarnations were raised by {offset - before}"
        row = diff.remark("store_restored", at=at, by=_SERVER, cause=cause, after=0)
        self._buffer.to_write().execute(ADD_HISTORY, rows.from_history(row))

    @property
    def moves_vms(self) -> bool:
        return self._builder.moves_vms

    @property
    def joined(self) -> set[ScopeId]:
        return self._builder.joined

    def end(self, *, next_wake: datetime | None, first_vm: ResourceName | None) -> None:
        """The functions of a group are committed together, so they share these two."""
        self._next_wake = next_wake
        self._first_vm = first_vm

    def commit(self) -> Commit:
        return self._builder.commit(next_wake=self._next_wake, first_vm=self._first_vm)

    @override
    def _saved(self, scope_id: ScopeId) -> Saved:
        saved = self.written.get(scope_id) or self._cache.find(scope_id)
        if saved is None:
            saved = super()._saved(scope_id)
            self._cache.loaded(saved)
        return saved

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
        """Written at once, not buffered: the next VM's position depends on those before it.

        The conditions come first because an empty statement takes nearly as long as one row.
        """
        if difference.removed:
            for statement in (LEAVE_SCOPE, REMOVE_RESOURCE):
                self._buffer.to_write().executemany(
                    statement, [(fold(name),) for name in difference.removed]
                )
        if difference.added:
            self._buffer.to_write().executemany(
                ADD_RESOURCE,
                [rows.new_resource(vm, difference.scope.id) for vm in difference.added],
            )
        if difference.order:
            self._buffer.to_write().executemany(
                PLACE_RESOURCE,
                [(place, fold(name)) for place, name in enumerate(difference.order)],
            )


# --- what one save writes ------------------------------------------------------------------------

# A copy shares unchanged parts with its original. So a part that is not the same object is taken
# for changed: it may be written needlessly, and is never left out.


def _of_scope(before: Scope, saved: Saved, *, next_wake: datetime | None) -> Iterator[Written]:
    scope = saved.scope
    if (
        scope.policy is not before.policy
        or scope.rounds is not before.rounds
        or scope.kind is not before.kind
    ):
        yield PLAN_SCOPE, rows.scope_plan(scope)
    yield MOVE_SCOPE, rows.scope_state(saved, next_wake=next_wake)


def _of_resources(before: Scope, difference: Delta) -> Iterator[Written]:
    for vm in difference.changed:
        former = before.resources[vm.name]
        if former.state is not vm.state:
            yield MOVE_RESOURCE, rows.resource_state(vm)
        if replace(former, state=vm.state) != vm:
            yield MODEL_RESOURCE, rows.resource_model(vm)


def _of_events(before: Scope, difference: Delta) -> Iterator[Written]:
    for record in difference.records:
        event = record.event
        former = before.events.get(event.id)
        if former is None:
            yield ADD_EVENT, rows.new_event(record)
            continue
        if (
            event.resources is not former.resources
            or event.description is not former.description
            or event.duration is not former.duration
            or event.announced is not former.announced
        ):
            yield WORD_EVENT, rows.event_words(event)
        if record.ended_at is None:
            yield MOVE_EVENT, rows.event_state(event)
        else:
            yield END_EVENT, rows.event_end(record)


def _of_history(change: Change, by: Actor) -> Iterator[Written]:
    for row in diff.history(change.transitions, by=by, after=0):
        yield ADD_HISTORY, rows.from_history(row)
