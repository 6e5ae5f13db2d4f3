"""Everything the service writes to a database."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple

from typing_extensions import override

from forewarned.core.change import Change
from forewarned.core.copying import replace
from forewarned.core.errors import DuplicateEventError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Actor, Resource, Scope, ScopeKind
from forewarned.core.tasks import ActuatorOf, Task
from forewarned.service.drains.model import Drain
from forewarned.service.records import Binding, Declaration, EventRecord, OperationRecord, Saved
from forewarned.service.subscriptions.model import Message
from forewarned.storage import diff, rows
from forewarned.storage.commit_builder import CommitBuilder
from forewarned.storage.diff import Delta, fold
from forewarned.storage.errors import UnloadedScopeError
from forewarned.storage.history import chain
from forewarned.storage.history.retention import RetentionWrites
from forewarned.storage.relational import changes, declarations, drains, tasks
from forewarned.storage.relational.bindings import bindings_that_change, refuse_taken
from forewarned.storage.relational.database import BufferedDatabase
from forewarned.storage.relational.publishing import outbox
from forewarned.storage.relational.publishing.subscriptions import PublishingWrites
from forewarned.storage.relational.snapshot import RelationalSnapshot
from forewarned.storage.relational.statements import (
    ADD_HISTORY,
    ADD_MESSAGE,
    BIND_RESOURCE,
    MOVE_TASK,
    WAKE_SCOPE,
)
from forewarned.storage.rows import FoundRow, micros

NextWake = Callable[[Scope], datetime | None]

_NONE_JOIN: Final[Mapping[ResourceName, Binding]] = {}
_RECKONED: Final = "wakes reckoned with"
_READ_LONG_AGO: Final = Scope(
    id=ScopeId("any"),
    kind=ScopeKind.VIRTUAL_MACHINE,
    active=True,
    last_read_at=datetime(1970, 1, 1, tzinfo=UTC),
)


class Publishing(NamedTuple):
    """What a transaction needs to know of publishing."""

    is_on: bool
    """Whether there was a subscription when it began."""
    clock: Callable[[], datetime]
    """Real time."""


class RelationalTransaction(RelationalSnapshot, PublishingWrites, RetentionWrites):
    @override
    def __init__(
        self,
        database: BufferedDatabase,
        now: datetime,
        *,
        next_wake: NextWake,
        actuator_of: ActuatorOf,
        publishing: Publishing,
    ) -> None:
        super().__init__(database, now)
        self._publishing = publishing
        self._writable = database
        self._wake_of = next_wake
        self._actuator_of = actuator_of
        self._builder = CommitBuilder()
        self.written: dict[ScopeId, Saved] = {}
        """Scopes as this function leaves them, for others to see once it has succeeded."""
        self._records: dict[EventId, EventRecord] = {}
        """Events as this function leaves them."""
        self._loaded: set[ScopeId] = set()
        """Scopes that this function may save."""
        self._claimed: set[ScopeId] = set()
        self.history_rows = 0
        """How many rows of history this function has written."""
        self._places: list[int] = []
        """Which of them those of the transitions are."""

    @override
    def load(self, scope_id: ScopeId) -> Scope:
        self._loaded.add(scope_id)
        return super().load(scope_id)

    def load_all(self, scope_ids: Collection[ScopeId]) -> list[Scope]:
        return [self.load(scope_id) for scope_id in scope_ids if self.exists(scope_id)]

    def claim_due(self, limit: int) -> list[ScopeId]:
        # PostgreSQL locks what it claims, so it has its own: `DUE` in postgres/locked_scopes.py.
        due = self._ids(
            "SELECT id FROM scopes WHERE next_wake <= ? ORDER BY next_wake, id LIMIT ?",
            micros(self._now),
            limit,
        )
        self._claimed.update(due)
        return due

    @override
    def event(self, event_id: EventId) -> EventRecord | None:
        # Mostly what was just saved, which would have to be written to the database first.
        return self._records.get(event_id) or super().event(event_id)

    def exists(self, scope_id: ScopeId) -> bool:
        if scope_id in self.written:
            return True
        return self._one("SELECT 1 FROM scopes WHERE id = ?", scope_id) is not None

    def create(self, scope: Scope) -> None:
        diff.refuse_inhabited(scope)
        if self.exists(scope.id):
            raise ValueError(f"scope {scope.id!r} exists")
        offset = self._offset()
        if offset:
            # The scope may have existed before a restore: its VMs and Boards may still compare.
            scope = replace(scope, incarnation=scope.incarnation + offset)
        saved = self._builder.created(scope, revision=1 + offset)
        row = rows.new_scope(saved, next_wake=self._wake_of(scope))
        self._writable.create(row)
        self.written[scope.id] = saved
        self._loaded.add(scope.id)

    def _offset(self) -> int:
        """How far above 0 the revisions and incarnations of new scopes begin."""
        return 0

    def save(self, change: Change, *, by: Actor, moved: Sequence[Task] = ()) -> None:
        before, difference = self._compared(change)
        if difference is None:
            if moved:
                self.put_tasks(moved)
            if change.scope.id in self._claimed:
                wake = micros(self._wake_of(before.scope))
                self._writable.save(change.scope.id, [(WAKE_SCOPE, (wake, change.scope.id))])
            return
        self._refuse_taken([difference], {})
        self._write(change, before, difference, by=by, moved=moved)

    def enroll(
        self, changes: Collection[Change], bindings: Collection[Binding], *, by: Actor
    ) -> list[ResourceName]:
        compared = [(change, *self._compared(change)) for change in changes]
        differing = [difference for _, _, difference in compared if difference is not None]
        added = {vm.name for difference in differing for vm in difference.added}
        joining = {binding.name: binding for binding in bindings if binding.name in added}
        self._refuse_taken(differing, joining)
        for change, before, difference in compared:
            if difference is not None:
                self._write(change, before, difference, by=by, joining=joining)
        if joining:
            self._joined(joining.values())
        others = [binding for binding in bindings if binding.name not in joining]
        return [*joining, *(self.bind_all(others) if others else ())]

    def _compared(self, change: Change) -> tuple[Saved, Delta | None]:
        if change.scope.id not in self._loaded:
            raise UnloadedScopeError(change.scope.id)
        before = self._saved(change.scope.id)
        return before, diff.between(before.scope, change)

    def _write(
        self,
        change: Change,
        before: Saved,
        difference: Delta,
        *,
        by: Actor,
        moved: Sequence[Task] = (),
        joining: Mapping[ResourceName, Binding] = _NONE_JOIN,
    ) -> None:
        """`joining` are the bindings of VMs that the change adds."""
        places: Mapping[str, outbox.Place] = {}
        if self._publishing.is_on:
            leaving = {*difference.removed, *outbox.leaving(change)}
            if leaving:
                places = outbox.places_of(self._database, leaving)
            if difference.removed and places:
                self._place_waiting(change.scope.id, places)
        if difference.removed:
            self._remove(difference.removed)
        is_first = not (difference.added and before.scope.resources)
        position = 0 if is_first else self._next_position(change.scope.id)
        saved = self._builder.changed(before, difference)
        messages: Sequence[changes.Written] = ()
        if self._publishing.is_on:
            messages = self._publish(outbox.of_change(change, by, places))
        first = self.history_rows
        self.history_rows += len(change.transitions)
        self._places.extend(range(first, self.history_rows))
        self._writable.save(
            change.scope.id,
            [
                *changes.of_resources(before.scope, difference, first=position, joining=joining),
                *changes.of_events(before.scope, difference),
                *tasks.of_change(change, moved, self._actuator_of),
                *changes.of_history(change, by),
                *messages,
                *changes.of_scope(before.scope, saved, next_wake=self._wake_of(change.scope)),
            ],
        )
        self.written[change.scope.id] = saved
        self._records.update((record.event.id, record) for record in difference.records)

    def _publish(self, messages: Iterable[Message]) -> Sequence[changes.Written]:
        """The rows of messages, to be written with the change that sends them.

        Where nodes share a store, subscriptions would have to be asked for in each transaction. So
        all messages are written, and compared with the subscriptions when they are taken out.
        """
        written = [
            (ADD_MESSAGE, (message.scope_id, outbox.content_of(message))) for message in messages
        ]
        if written:
            self._tell_publisher()
        return written

    def _place_waiting(self, scope_id: ScopeId, places: Mapping[str, outbox.Place]) -> None:
        """VMs will be removed that messages may be about which say not yet where they are."""
        outbox.place_waiting(self._writable, scope_id, places)

    @cached_property
    @override
    def real_now(self) -> datetime:
        return self._publishing.clock()

    @override
    def _tell_publisher(self) -> None:
        self._builder.published()

    def put_tasks(self, moved: Sequence[Task]) -> None:
        self._writable.write_rows(MOVE_TASK, list(map(tasks.task_state, moved)))

    def bind(self, binding: Binding) -> None:
        self.bind_all([binding])

    def bind_all(self, bindings: Collection[Binding]) -> list[ResourceName]:
        among = self._dialect.among
        found = self._all(
            f"""SELECT folded, name, scope_id, address, profile FROM resources
                WHERE {among("folded", "?")} OR {among("address", "?")} {self._for_update}""",
            self._dialect.several([fold(binding.name) for binding in bindings]),
            self._dialect.several([binding.address for binding in bindings if binding.address]),
        )
        changed = bindings_that_change(bindings, found)
        if changed:
            self._write_bindings(changed)
        for binding in changed:
            self._builder.bound(binding)
        return [binding.name for binding in changed]

    @override
    def put_note(self, key: str, value: str) -> None:
        # Not one statement for both: where another node has just added it, this function must be
        # run again, because it has decided without it.
        if self.note(key) is None:
            self._writable.write("INSERT INTO notes (key, value) VALUES (?, ?)", (key, value))
        else:
            self._writable.write("UPDATE notes SET value = ? WHERE key = ?", (value, key))

    def declare(self, declaration: Declaration) -> None:
        # As with notes.
        is_new = self.declaration(declaration.path) is None
        self._writable.write(
            declarations.ADD if is_new else declarations.REPLACE, rows.from_declaration(declaration)
        )

    def withdraw(self, path: str) -> None:
        self._writable.write("DELETE FROM declarations WHERE folded = ?", (fold(path),))

    def open_operation(self, operation: OperationRecord) -> None:
        declarations.open_operation(self._writable, operation, now=self.now)

    def put_drain(self, drain: Drain) -> None:
        # As with notes.
        is_new = self.drain(drain.host) is None
        self._writable.write(drains.ADD if is_new else drains.REPLACE, drains.from_drain(drain))

    def actuator_of(self, vm: Resource) -> str:
        return self._actuator_of(vm)

    @override
    def record(self, action: str, *, by: Actor, cause: str) -> None:
        self._remark(action, at=self.now, by=by, cause=cause)

    def chain_history(self, limit: int) -> int:
        found, upto = self._unchained(limit)
        if found:
            chain.append(self._writable, found)
            self.put_note(chain.CHAINED, upto)
        return len(found)

    @abstractmethod
    def _unchained(self, limit: int) -> tuple[Sequence[FoundRow], str]:
        """The next rows for the chain, and the note of where to look for those after them.

        In an order in which no row can come before one that is chained already. None while another
        transaction appends to the chain.
        """

    def correct_wakes(self) -> None:
        """Compute every scope's wake again, if the rules differ from those of the last run.

        A wake that is too late would leave a scope active.
        """
        # A wake depends on the rules only by the silence they allow: this scope shows that.
        rule = str(micros(self._wake_of(_READ_LONG_AGO)))
        if self.note(_RECKONED) == rule:
            return
        for saved in self.scopes():
            self._writable.write(
                f"""UPDATE scopes SET next_wake = :wake
                    WHERE id = :id AND next_wake {self._dialect.differs_from} :wake""",
                {"wake": micros(self._wake_of(saved.scope)), "id": saved.scope.id},
            )
        self.put_note(_RECKONED, rule)

    @property
    @override
    def _for_update(self) -> str:
        return self._dialect.for_update

    @property
    @override
    def _unlocked(self) -> str:
        return self._dialect.unlocked

    @override
    def _saved(self, scope_id: ScopeId) -> Saved:
        return self.written.get(scope_id) or super()._saved(scope_id)

    def _remark(self, action: str, *, at: datetime, by: Actor, cause: str) -> None:
        self.history_rows += 1
        row = rows.from_remark(action, at=at, by=by, cause=cause)
        self._writable.write_rows(ADD_HISTORY, [row])

    def _refuse_taken(
        self, differences: Sequence[Delta], joining: Mapping[ResourceName, Binding]
    ) -> None:
        if any(difference.added for difference in differences):
            among = self._dialect.among
            added = [vm.name for difference in differences for vm in difference.added]
            found = self._all(
                f"""SELECT folded, name, scope_id, address FROM resources
                    WHERE {among("folded", "?")} OR {among("address", "?")}""",
                self._dialect.several([fold(name) for name in added]),
                self._dialect.several([each.address for each in joining.values() if each.address]),
            )
            refuse_taken(differences, joining, found)
        for difference in differences:
            for event_id in difference.opened:
                if self.event(event_id) is not None:
                    raise DuplicateEventError(event_id)

    def _next_position(self, scope_id: ScopeId) -> int:
        [[position]] = self._all(
            "SELECT coalesce(max(position) + 1, 0) FROM resources WHERE scope_id = ?", scope_id
        )
        return int(position)

    def _joined(self, bindings: Collection[Binding]) -> None:
        """VMs were added, each with its binding."""
        for binding in bindings:
            self._builder.bound(binding)

    def _write_bindings(self, bindings: Collection[Binding]) -> None:
        self._writable.write_rows(BIND_RESOURCE, list(map(rows.from_binding, bindings)))

    def _remove(self, names: Collection[ResourceName]) -> None:
        removed = self._dialect.several([fold(name) for name in names])
        among = self._dialect.among("folded", "?")
        self._writable.write(
            f"""INSERT INTO former_scopes (folded, scope_id)
                SELECT folded, scope_id FROM resources WHERE {among} ON CONFLICT DO NOTHING""",
            (removed,),
        )
        self._writable.write(f"DELETE FROM resources WHERE {among}", (removed,))
