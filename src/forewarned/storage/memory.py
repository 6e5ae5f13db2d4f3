"""A store in memory: for tests, and for servers that live as long as one.

A transaction works on a copy of everything and replaces the original at the end, so a snapshot
stays as it was when it was taken.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Self, TypeVar

from typing_extensions import override

from forewarned.core.change import Change
from forewarned.core.errors import DuplicateEventError, UnknownResourceError, UnknownScopeError
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import Actor, Event, EventStatus, Scope, ScopeKind
from forewarned.service import attention
from forewarned.service.attention import Attention
from forewarned.service.errors import AddressTakenError, NameTakenError
from forewarned.service.listings import (
    EventFilter,
    FoundVm,
    HistoryFilter,
    HistoryRow,
    HostSummary,
    Order,
    ScopeListing,
    ScopeSummary,
)
from forewarned.service.ports import Clock, Lease, Listener, Snapshot, Transaction
from forewarned.service.records import (
    Binding,
    Census,
    Commit,
    Declaration,
    EventRecord,
    GroupPlace,
    OperationRecord,
    PageContent,
    Place,
    Saved,
    ScopePlaces,
    Summary,
)
from forewarned.storage import diff, matching
from forewarned.storage.commit_builder import CommitBuilder
from forewarned.storage.contents import Contents
from forewarned.storage.diff import Delta, fold
from forewarned.storage.errors import UnloadedScopeError
from forewarned.storage.matching import each_once, forgotten_before, hosts_like, likeness
from forewarned.storage.sqlite.leases import ProcessLeases

T = TypeVar("T")
NextWake = Callable[[Scope], datetime | None]


class MemoryStore:
    def __init__(self, clock: Clock, *, next_wake: NextWake) -> None:
        self._clock = clock
        self._next_wake = next_wake
        self._contents = Contents()
        self._leases = ProcessLeases()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),  # noqa: ARG002  # functions run one after another
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        # No await between reading the contents and replacing them, so no lock is needed.
        contents = self._contents.copy()
        transaction = MemoryTransaction(contents, self._clock.now(), self._next_wake)
        result = function(transaction)
        commit = transaction.commit()
        self._contents = contents
        if tell is not None:
            tell(commit)
        return result, commit

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        contents = self._contents.copy()
        for scope_id, at in marks.items():
            saved = contents.scopes.get(scope_id)
            last = None if saved is None else saved.scope.last_read_at
            if saved is not None and saved.scope.active and (last is None or last <= at - older_by):
                scope = replace(saved.scope, last_read_at=at)
                contents.scopes[scope_id] = replace(saved, scope=scope)
        self._contents = contents

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return self._leases.lease(name)

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        return question(MemorySnapshot(self._contents, self._clock.now()))


class MemorySnapshot:
    def __init__(self, contents: Contents, now: datetime) -> None:
        self._contents = contents
        self._now = now

    @property
    def now(self) -> datetime:
        return self._now

    def load(self, scope_id: ScopeId) -> Scope:
        return self._saved(scope_id).scope

    def scopes(self) -> Iterator[Saved]:
        return iter(list(self._contents.scopes.values()))

    def pages(self) -> Iterator[PageContent]:
        return map(PageContent.of, self.scopes())

    def binding(self, name: str) -> Binding | None:
        return self._contents.bindings.get(fold(name))

    def bindings(self) -> Iterator[Binding]:
        names = [name for saved in self.scopes() for name in saved.scope.resources]
        found = map(self.binding, names)
        return iter([binding for binding in found if binding is not None])

    def scope_places(self) -> Iterator[ScopePlaces]:
        by_scope: dict[ScopeId, ScopePlaces] = {}
        for name, scope_id, address in self.places():
            found = by_scope.setdefault(scope_id, ScopePlaces(scope_id, [], []))
            found.names.append(name)
            found.addresses.append(address)
        return iter(by_scope.values())

    def places(self) -> Iterator[Place]:
        return map(Place.of, self.bindings())

    def first_vm(self) -> ResourceName | None:
        return next((binding.name for binding in self.bindings()), None)

    def event(self, event_id: EventId) -> EventRecord | None:
        return self._contents.events.get(event_id)

    def events(self, wanted: EventFilter) -> list[EventRecord]:
        records = self._contents.events.values()
        if wanted.order is Order.URGENT:
            found = [record for record in records if self._is_wanted(record, wanted)]
            return sorted(found, key=matching.urgency)[: wanted.limit]
        newest_first = (each for each in reversed(records) if self._is_wanted(each, wanted))
        return list(islice(newest_first, wanted.limit))[::-1]

    def closed(self, scope_id: ScopeId, event_ids: Collection[EventId]) -> frozenset[EventId]:
        records = (self.event(event_id) for event_id in event_ids)
        return frozenset(
            record.event.id
            for record in records
            if record is not None and record.scope_id == scope_id and record.ended_at is not None
        )

    def started(self) -> list[EventRecord]:
        records = self._contents.events.values()
        return [record for record in records if record.event.status is EventStatus.STARTED]

    def scopes_of_work(self, work: MaintenanceId) -> list[ScopeId]:
        return sorted(
            saved.scope.id
            for saved in self.scopes()
            if any(event.maintenance == work for event in saved.scope.events.values())
        )

    def hosts(self) -> list[HostName]:
        vms = (vm for saved in self.scopes() for vm in saved.scope.resources.values())
        return sorted({vm.host for vm in vms})

    def scopes_on(self, host: HostName) -> list[ScopeId]:
        return sorted(
            saved.scope.id
            for saved in self.scopes()
            if any(vm.host == host for vm in saved.scope.resources.values())
        )

    def next_wake(self) -> datetime | None:
        return min(self._contents.wakes.values(), default=None)

    def census(self) -> Census:
        open_ = (e for saved in self.scopes() for e in saved.scope.events.values())
        return Census(
            scopes=len(self._contents.scopes),
            events=Counter((event.type, event.status) for event in open_),
        )

    def summary(self) -> Summary:
        open_ = [e for saved in self.scopes() for e in saved.scope.events.values()]
        counted = {
            each: sum(attention.wants(each, event, now=self._now) for event in open_)
            for each in Attention
        }
        return Summary(
            soon=counted[Attention.SOON],
            held=counted[Attention.HELD],
            overdue=counted[Attention.OVERDUE],
            unread_scopes=len(self.unread_scope_ids()),
            hosts=len(self.affected_hosts()),
        )

    def unread_scope_ids(self) -> list[ScopeId]:
        scopes = (saved.scope for saved in self.scopes())
        return [scope.id for scope in scopes if scope.resources and not scope.active]

    def history(self, wanted: HistoryFilter) -> list[HistoryRow]:
        newest_first = reversed(self._contents.history)
        return list(
            islice(
                (row for row in newest_first if matching.is_wanted_row(row, wanted)), wanted.limit
            )
        )

    def vms_like(self, text: str, *, limit: int) -> list[FoundVm]:
        found = [
            (rank, fold(vm.name), FoundVm(vm.name, saved.scope.id, vm.host))
            for saved in self.scopes()
            for vm in saved.scope.resources.values()
            if (rank := likeness(vm.name, text)) is not None
        ]
        return [vm for _, _, vm in sorted(found)[:limit]]

    def scopes_like(self, text: str, *, kinds: Collection[ScopeKind], limit: int) -> list[ScopeId]:
        found = [
            (rank, fold(saved.scope.id), saved.scope.id)
            for saved in self.scopes()
            if saved.scope.kind in kinds and (rank := likeness(saved.scope.id, text)) is not None
        ]
        return [scope_id for _, _, scope_id in sorted(found)[:limit]]

    def hosts_like(self, text: str, *, limit: int) -> list[HostName]:
        return hosts_like(self.hosts(), text)[:limit]

    def scope_listing(self, text: str, *, offset: int, limit: int) -> ScopeListing:
        hosts = frozenset(hosts_like(self.hosts(), text))
        found = [
            saved.scope
            for saved in self.scopes()
            if matching.is_scope_like(saved.scope, text, hosts)
        ]
        return ScopeListing(
            len(found),
            tuple(
                ScopeSummary(
                    id=scope.id,
                    kind=scope.kind,
                    active=scope.active,
                    last_read_at=scope.last_read_at,
                    vms=len(scope.resources),
                    events=len(scope.events),
                )
                for scope in found[offset : offset + limit]
            ),
        )

    def vms_like_in(
        self, scope_ids: Collection[ScopeId], text: str, *, limit: int
    ) -> dict[ScopeId, list[ResourceName]]:
        found = {
            scope_id: [name for name in self.load(scope_id).resources if fold(text) in fold(name)]
            for scope_id in scope_ids
        }
        return {scope_id: names[:limit] for scope_id, names in found.items() if names}

    def affected_hosts(self) -> list[HostName]:
        scopes = [saved.scope for saved in self.scopes() if saved.scope.events]
        events = ((scope.id, event) for scope in scopes for event in scope.events.values())
        return sorted({host for id_, event in events for host in self._hosts_of(id_, event)})

    def host_summaries(self, hosts: Collection[HostName]) -> list[HostSummary]:
        vms, scopes = Counter[HostName](), Counter[HostName]()
        events: dict[HostName, dict[EventId, Event]] = {}
        for saved in self.scopes():
            here = [vm.host for vm in saved.scope.resources.values() if vm.host in hosts]
            vms.update(here)
            scopes.update(set(here))
            for event in saved.scope.events.values():
                for host in self._hosts_of(saved.scope.id, event):
                    events.setdefault(host, {})[event.id] = event
        order = {event_id: place for place, event_id in enumerate(self._contents.events)}
        return [
            HostSummary(
                name=host,
                vms=vms[host],
                scopes=scopes[host],
                events=tuple(sorted(events.get(host, {}).values(), key=lambda e: order[e.id])),
            )
            for host in sorted(vms)
        ]

    def recorded(self, action: str, event_ids: Collection[EventId]) -> frozenset[EventId]:
        told = {row.event_id for row in self._contents.history if row.action == action}
        return frozenset(event_id for event_id in event_ids if event_id in told)

    def note(self, key: str) -> str | None:
        return self._contents.notes.get(key)

    def holder(self, address: str) -> ResourceName | None:
        return self._contents.addresses.get(address)

    def scope_ids(self, prefix: str) -> list[ScopeId]:
        start = fold(prefix)
        return [id_ for id_ in self._contents.scopes if fold(id_).startswith(start)]

    def resource_groups(self) -> list[GroupPlace]:
        profiles = (binding.profile for binding in self._contents.bindings.values())
        return each_once(
            GroupPlace(profile.subscription_id, profile.resource_group, profile.location)
            for profile in profiles
        )

    def declaration(self, path: str) -> Declaration | None:
        return self._contents.declarations.get(fold(path))

    def declarations(self, prefix: str) -> Iterator[Declaration]:
        start = fold(prefix)
        by_path = sorted(self._contents.declarations.items(), key=lambda item: item[0])
        return iter([declared for path, declared in by_path if path.startswith(start)])

    def operation(self, operation_id: str) -> OperationRecord | None:
        return self._contents.operations.get(operation_id)

    def _is_wanted(self, record: EventRecord, wanted: EventFilter) -> bool:
        hosts = () if wanted.host is None else self._hosts_of(record.scope_id, record.event)
        return (
            matching.is_wanted_event(record, wanted)
            and (wanted.host is None or wanted.host in hosts)
            and (
                wanted.attention is None
                or attention.wants(wanted.attention, record.event, now=self._now)
            )
        )

    def _hosts_of(self, scope_id: ScopeId, event: Event) -> set[HostName]:
        """The hosts its VMs are on now."""
        vms = self.load(scope_id).resources
        return {vms[name].host for name in event.resources if name in vms}

    def _saved(self, scope_id: ScopeId) -> Saved:
        saved = self._contents.scopes.get(scope_id)
        if saved is None:
            raise UnknownScopeError(scope_id)
        return saved


class MemoryTransaction(MemorySnapshot):
    @override
    def __init__(self, contents: Contents, now: datetime, next_wake: NextWake) -> None:
        super().__init__(contents, now)
        self._wake_of = next_wake
        self._builder = CommitBuilder()
        self._loaded: set[ScopeId] = set()
        self._claimed: list[ScopeId] = []
        """Scopes that this function may save."""

    @override
    def load(self, scope_id: ScopeId) -> Scope:
        self._loaded.add(scope_id)
        return super().load(scope_id)

    def load_all(self, scope_ids: Collection[ScopeId]) -> list[Scope]:
        return [self.load(scope_id) for scope_id in scope_ids if self.exists(scope_id)]

    def claim_due(self, limit: int) -> list[ScopeId]:
        due = [(at, scope_id) for scope_id, at in self._contents.wakes.items() if at <= self._now]
        self._claimed = [scope_id for _, scope_id in sorted(due)[:limit]]
        return self._claimed

    def exists(self, scope_id: ScopeId) -> bool:
        return scope_id in self._contents.scopes

    def create(self, scope: Scope) -> None:
        diff.refuse_inhabited(scope)
        if self.exists(scope.id):
            raise ValueError(f"scope {scope.id!r} exists")
        self._put(self._builder.created(scope, revision=1))
        self._loaded.add(scope.id)

    def save(self, change: Change, *, by: Actor) -> None:
        if change.scope.id not in self._loaded:
            raise UnloadedScopeError(change.scope.id)
        before = self._saved(change.scope.id)
        difference = diff.between(before.scope, change)
        if difference is None:
            if change.scope.id in self._claimed:
                self._put(before)
            return
        self._refuse_taken(difference)
        self._move_resources(difference)
        self._contents.events.update({r.event.id: r for r in difference.records})
        rows = self._contents.history
        rows.extend(diff.history(change.transitions, by=by, after=len(rows)))
        self._put(self._builder.changed(before, difference))

    def bind_all(self, bindings: Collection[Binding]) -> list[ResourceName]:
        return [binding.name for binding in bindings if self._bind(binding)]

    def bind(self, binding: Binding) -> None:
        self._bind(binding)

    def _bind(self, binding: Binding) -> bool:
        contents = self._contents
        if contents.owners.get(fold(binding.name)) != binding.scope_id:
            raise UnknownResourceError(binding.name)
        holder = contents.addresses.get(binding.address)
        if holder is not None and fold(holder) != fold(binding.name):
            raise AddressTakenError(binding.address, holder)
        [name] = (n for n in self.load(binding.scope_id).resources if fold(n) == fold(binding.name))
        binding = replace(binding, name=name)
        if self.binding(name) == binding:
            return False
        self._unbind(name)
        contents.bindings[fold(name)] = binding
        if binding.address:
            contents.addresses[binding.address] = name
        self._builder.bound(binding)
        return True

    def put_note(self, key: str, value: str) -> None:
        self._contents.notes[key] = value

    def declare(self, declaration: Declaration) -> None:
        former = self.declaration(declaration.path)
        path = declaration.path if former is None else former.path
        self._contents.declarations[fold(path)] = replace(declaration, path=path)

    def withdraw(self, path: str) -> None:
        self._contents.declarations.pop(fold(path), None)

    def open_operation(self, operation: OperationRecord) -> None:
        operations = self._contents.operations
        last = forgotten_before(self.now)
        for old in [each.id for each in operations.values() if each.started_at < last]:
            del operations[old]
        if operation.id in operations:
            raise ValueError(f"operation {operation.id!r} exists")
        operations[operation.id] = operation

    def record(self, action: str, *, by: Actor, cause: str) -> None:
        rows = self._contents.history
        rows.append(diff.remark(action, at=self.now, by=by, cause=cause, after=len(rows)))

    def commit(self) -> Commit:
        first_vm = self.first_vm() if self._builder.moves_vms else None
        return self._builder.commit(next_wake=self.next_wake(), first_vm=first_vm)

    def _refuse_taken(self, difference: Delta) -> None:
        for vm in difference.added:
            owner = self._contents.owners.get(fold(vm.name), difference.scope.id)
            if owner != difference.scope.id:
                raise NameTakenError(vm.name, owner)
        for event_id in difference.opened:
            if event_id in self._contents.events:
                raise DuplicateEventError(event_id)

    def _move_resources(self, difference: Delta) -> None:
        for name in difference.removed:
            self._unbind(name)
            del self._contents.owners[fold(name)]
        for vm in difference.added:
            self._contents.owners[fold(vm.name)] = difference.scope.id

    def _unbind(self, name: ResourceName) -> None:
        former = self._contents.bindings.pop(fold(name), None)
        if former is not None:
            self._contents.addresses.pop(former.address, None)

    def _put(self, saved: Saved) -> None:
        scope_id = saved.scope.id
        self._contents.scopes[scope_id] = saved
        self._contents.wakes.pop(scope_id, None)
        if (at := self._wake_of(saved.scope)) is not None:
            self._contents.wakes[scope_id] = at
