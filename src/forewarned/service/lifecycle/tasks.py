"""Tasks of Started events: actuators claim them and report on them, operators retry and skip them.

Invariant (I22): what a report says is taken from the newest claim of its task alone, and decided in
one transaction with what follows from it: a VM is interrupted, restored, or its event is over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from forewarned.core import lifecycle, membership, tasks
from forewarned.core.change import Change
from forewarned.core.errors import TaskLostError, UnknownTaskError
from forewarned.core.ids import EventId, HostName, ResourceName, same_name
from forewarned.core.model import Actor, Event, EventStatus, EventType, Scope
from forewarned.core.tasks import NOT_CARRIED_OUT, Failure, Task, TaskState
from forewarned.core.transitions import CarriedOut, Retried, Skipped
from forewarned.service.engine import Engine, save
from forewarned.service.ports import Transaction

_LEAVES_VMS: Final = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})
_STOPS_GUESTS: Final = frozenset({EventType.REBOOT, EventType.REDEPLOY})
"""A restarted VM is back when its guest reads the document again."""


class TaskRef(NamedTuple):
    """A task, and the attempt that a report is about."""

    event_id: EventId
    vm: ResourceName
    attempt: int


class Seen(NamedTuple):
    """A VM as an actuator saw it."""

    text: str = ""
    """In the actuator's own JSON."""
    host: HostName | None = None
    """Where it was; None if that is unknown."""
    stood_still: timedelta | None = None
    """For how long, as the platform has measured it; None if it has not."""


_NOTHING: Final = Seen()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claimed task, with what its actuator has to know."""

    task: Task
    vm_id: str
    """What its platform knows the VM by; empty if the fleet does not say."""
    host: HostName
    """Where the fleet says that the VM is."""
    duration: timedelta | None
    """The event's."""


Decision = Callable[["_Case"], tuple[Change, Task]]
"""Decides of one task: what changes with it, and the task as it is then."""


class _Case(NamedTuple):
    tx: Transaction
    scope: Scope
    event: Event
    task: Task


class Tasks:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def claim(self, actuator: str, *, holder: str, limit: int) -> list[Claim]:
        """Asked every second by each actuator, so it mostly only reads."""
        if not await self._engine.ask(lambda snapshot: snapshot.claimable_tasks(actuator, limit=1)):
            return []

        def decision(tx: Transaction) -> list[Claim]:
            found = tx.claimable_tasks(actuator, limit=limit)
            if not found:
                return []
            claimed = [tasks.claimed(task, holder=holder, now=tx.now) for task in found]
            tx.put_tasks(claimed)
            return _claims(tx, claimed)

        return await self._engine.decide(decision)

    async def renew(self, ref: TaskRef, now: Seen = _NOTHING) -> Task:
        def decision(tx: Transaction) -> Task:
            task = _found(tx, ref.event_id, ref.vm)
            if task is None:
                raise TaskLostError(f"{ref.event_id}/{ref.vm}", ref.attempt)
            tasks.refuse_lost(task, ref.attempt)
            renewed = tasks.renewed(task, now=tx.now, after=now.text)
            tx.put_tasks([renewed])
            return renewed

        return await self._engine.decide(decision)

    async def begin(self, ref: TaskRef, before: Seen, *, by: Actor) -> Task:
        """Once this returns it is durable that the VM is interrupted from now on."""

        def decide(case: _Case) -> tuple[Change, Task]:
            now = case.tx.now
            begun = tasks.begun(case.task, before=before.text, now=now)
            change = lifecycle.interrupt(case.scope, case.event.id, vms=(case.task.vm,), now=now)
            return change, begun

        return await self._report(ref, decide, by=by)

    async def finish(self, ref: TaskRef, after: Seen, *, by: Actor) -> Task:
        def decide(case: _Case) -> tuple[Change, Task]:
            tx, scope, event, task = case
            change = Change(scope=scope)
            if after.host is not None and event.type in _LEAVES_VMS:
                change = membership.move(scope, task.vm, after.host, now=tx.now)
            if event.type in _STOPS_GUESTS and event.announced:
                fact = lifecycle.note(change.scope, CarriedOut, event.id, vm=task.vm, now=tx.now)
                return change.plus(fact), tasks.returning(task, after=after.text)
            restored = _restored(case._replace(scope=change.scope), away=after.stood_still)
            return change.plus(restored), tasks.done(task, after=after.text)

        return await self._report(ref, decide, by=by)

    async def fail(self, ref: TaskRef, failure: Failure, after: Seen, *, by: Actor) -> Task:
        def decide(case: _Case) -> tuple[Change, Task]:
            tx, scope, event, task = case
            failed = tasks.failed(task, failure, after=after.text, now=tx.now)
            if failed.state is TaskState.STUCK:
                reason = failure.error
                stalled = lifecycle.stall(scope, event.id, vm=task.vm, reason=reason, now=tx.now)
                return stalled, failed
            if failure.unharmed:
                return _restored(case, reason=f"{NOT_CARRIED_OUT}{failure.error}"), failed
            return Change(scope=scope), failed

        return await self._report(ref, decide, by=by)

    async def returned(
        self, event_id: EventId, vm: ResourceName, *, by: Actor, reason: str = ""
    ) -> None:
        """A guest reads again, or has had all the time it gets. Changes nothing but the first time.

        The reason says what there is to say of it.
        """

        def decision(tx: Transaction) -> None:
            case = _case(tx, event_id, vm)
            if case is None or case.task.state is not TaskState.RETURNING:
                return
            done = tasks.done(case.task, after=case.task.after)
            _settle(case, _restored(case, reason=reason), done, by=by)

        await self._engine.decide(decision)

    async def retry(self, event_id: EventId, vm: ResourceName, *, by: Actor) -> Task:
        """Raises UnknownTaskError, TaskStateError."""

        def decide(case: _Case) -> tuple[Change, Task]:
            retried = tasks.retried(case.task, now=case.tx.now)
            return _noted(case, Retried), retried

        return await self._order(event_id, vm, decide, by=by)

    async def skip(self, event_id: EventId, vm: ResourceName, *, by: Actor) -> Task:
        """Count it as done, whatever has become of it. Raises UnknownTaskError, TaskStateError."""

        def decide(case: _Case) -> tuple[Change, Task]:
            return _noted(case, Skipped), tasks.skipped(case.task)

        return await self._order(event_id, vm, decide, by=by)

    async def _report(self, ref: TaskRef, decide: Decision, *, by: Actor) -> Task:
        """Raises TaskLostError."""

        def decision(tx: Transaction) -> Task:
            case = _case(tx, ref.event_id, ref.vm)
            if case is None:
                raise TaskLostError(f"{ref.event_id}/{ref.vm}", ref.attempt)
            tasks.refuse_lost(case.task, ref.attempt)
            change, task = decide(case)
            _settle(case, change, task, by=by)
            return task

        return await self._engine.decide(decision)

    async def _order(
        self, event_id: EventId, vm: ResourceName, decide: Decision, *, by: Actor
    ) -> Task:
        def decision(tx: Transaction) -> Task:
            case = _case(tx, event_id, vm)
            if case is None:
                raise UnknownTaskError(f"{event_id}/{vm}")
            change, task = decide(case)
            _settle(case, change, task, by=by)
            return task

        return await self._engine.decide(decision)


def _case(tx: Transaction, event_id: EventId, vm: ResourceName) -> _Case | None:
    """None if the event is over, or the VM none of its, or no actuator's."""
    record = tx.event(event_id)
    if record is None or record.ended_at is not None:
        return None
    # The scope first: all who change a task by way of an event lock them in this order.
    scope = tx.load(record.scope_id)
    event = scope.events.get(event_id)
    if event is None or event.status is not EventStatus.STARTED:
        return None
    task = _found(tx, event_id, vm)
    if task is None or task.vm not in event.resources:
        return None
    return _Case(tx, scope, event, task)


def _found(tx: Transaction, event_id: EventId, vm: ResourceName) -> Task | None:
    return next((task for task in tx.tasks_of([event_id]) if same_name(task.vm, vm)), None)


def _settle(case: _Case, change: Change, task: Task, *, by: Actor) -> None:
    """Save, and complete the event if this was the last of its tasks."""
    tx, _, event, _ = case
    others = [other for other in tx.tasks_of([event.id]) if other.vm != task.vm]
    outcome = tasks.outcome(event, [*others, task])
    if outcome is not None:
        change = change.plus(
            lifecycle.complete(
                change.scope,
                event.id,
                now=tx.now,
                spared=outcome.spared,
                reason=outcome.reason,
            )
        )
    save(tx, change, by=by, moved=[task])


def _restored(case: _Case, *, reason: str = "", away: timedelta | None = None) -> Change:
    """No change if the VM was not interrupted, or nothing is left of it.

    `away` is what the platform has measured, such as the pause at the end of a live migration; None
    if nothing is known but when the task was begun.
    """
    tx, scope, event, task = case
    if event.type not in _LEAVES_VMS and not reason:
        return Change(scope=scope)
    if away is None and task.begun_at is not None:
        away = tx.now - task.begun_at
    return lifecycle.restore(scope, event.id, vms=(task.vm,), now=tx.now, away=away, reason=reason)


def _noted(case: _Case, kind: type[Retried | Skipped]) -> Change:
    return lifecycle.note(case.scope, kind, case.event.id, vm=case.task.vm, now=case.tx.now)


def _claims(tx: Transaction, claimed: Sequence[Task]) -> list[Claim]:
    ids = {
        binding.name: binding.profile.platform_id
        for binding in tx.bindings_named([task.vm for task in claimed])
    }
    claims = []
    for task in claimed:
        record = tx.event(task.event_id)
        claims.append(
            Claim(
                task=task,
                vm_id=ids.get(task.vm, ""),
                host=task.host,
                duration=None if record is None else record.event.duration,
            )
        )
    return claims
