"""The use cases of host drains: begin one, look at it, answer what it asks, and end it."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.copying import replace
from forewarned.core.descriptions import HOST_MAINTENANCE
from forewarned.core.errors import RefusalError, UnknownHostError
from forewarned.core.ids import EventId, HostName, ResourceName
from forewarned.core.lifecycle import NewEvent
from forewarned.core.model import Actor, EventSource, EventStatus, EventType, ResourceState
from forewarned.core.rules import Rules
from forewarned.service.drains import progress
from forewarned.service.drains.errors import (
    DeadlineTooSoonError,
    DrainInTheWayError,
    DrainUnderWayError,
    HostEmptyError,
    UndrainableError,
    UnknownDrainError,
)
from forewarned.service.drains.model import (
    Drain,
    DrainOrder,
    DrainState,
    HostListing,
    Move,
    MoveState,
)
from forewarned.service.drains.progress import Standing, Standings, SurveyAnswer
from forewarned.service.drains.questions import (
    Destinations,
    Question,
    destinations,
    questions_for,
)
from forewarned.service.drains.view import DrainView, view_of
from forewarned.service.engine import Engine, save
from forewarned.service.events.schedule import NewIds
from forewarned.service.ports import Snapshot, Transaction

_MOVING_TYPES = frozenset({EventType.FREEZE, EventType.REDEPLOY})


class HostDrains:
    def __init__(self, engine: Engine, rules: Rules, new_id: Callable[[], EventId]) -> None:
        self._engine = engine
        self._rules = rules
        self._new_id = new_id
        self._listeners: list[Callable[[Drain], None]] = []

    def tell(self, listener: Callable[[Drain], None]) -> None:
        """Tell the listener of every drain that is changed here, after the commit."""
        self._listeners.append(listener)

    async def begin(self, host: HostName, order: DrainOrder, *, by: Actor) -> DrainView:
        """Raises UnknownHostError, DrainUnderWayError, DrainInTheWayError, HostEmptyError,
        DeadlineTooSoonError, UndrainableError.
        """
        if order.type not in _MOVING_TYPES:
            raise UndrainableError(order.type)
        new_ids = NewIds(self._new_id)

        def decision(tx: Transaction) -> DrainView:
            earlier = tx.lock_drain(host)
            is_inhabited = bool(tx.scopes_on(host))
            _refuse_over(earlier, order, is_inhabited=is_inhabited)
            if not is_inhabited:
                raise UnknownHostError(host)
            drain = Drain(
                host=host,
                order=order,
                by=by.name,
                began_at=tx.now,
                changed_at=tx.now,
                moves=() if earlier is None else progress.taken_over(earlier),
            )
            least = progress.least_notice(drain)
            if order.deadline is not None and order.deadline < least:
                raise DeadlineTooSoonError(order.deadline, least)
            tx.record("drain_begun", by=by, cause=f"host {host}")
            return self._advanced(tx, drain, new_ids, by=by)

        return self._told(await self._engine.decide(decision))

    async def show(self, host: HostName) -> DrainView:
        """Raises UnknownDrainError."""

        def question(snapshot: Snapshot) -> DrainView:
            drain = snapshot.drain(host)
            if drain is None:
                raise UnknownDrainError(host)
            return view_of(snapshot, drain)

        return await self._engine.ask(question)

    async def end(self, host: HostName, *, by: Actor) -> DrainView:
        """Cancel what has not begun, and allow VMs to be moved to the host.

        Events that have started go on. Raises UnknownDrainError.
        """

        def decision(tx: Transaction) -> DrainView:
            drain = tx.lock_drain(host)
            if drain is None or drain.state is DrainState.CANCELED:
                raise UnknownDrainError(host)
            drain = _ended(tx, drain, by=by)
            tx.put_drain(drain)
            tx.record("drain_canceled", by=by, cause=f"host {host}")
            return view_of(tx, drain)

        return self._told(await self._engine.decide(decision))

    async def bring_back(self, host: HostName, *, by: Actor) -> DrainView:
        """End a drain, and move the VMs that it has moved back to the host, each with notice.

        It may have been ended before. Where VMs are on their way back nothing changes: to begin
        that again would forget those that have yet to come. Raises UnknownDrainError.
        """
        new_ids = NewIds(self._new_id)

        def decision(tx: Transaction) -> DrainView:
            drain = tx.lock_drain(host)
            if drain is None:
                raise UnknownDrainError(host)
            if drain.is_returning:
                return view_of(tx, drain)
            back = progress.returning(_ended(tx, drain, by=by), now=tx.now)
            return self._advanced(tx, back, new_ids, by=by)

        return self._told(await self._engine.decide(decision))

    async def advance(self, host: HostName, *, by: Actor) -> None:
        """Do what follows from where the VMs are now. Changes nothing of a drain that is over."""
        new_ids = NewIds(self._new_id)

        def decision(tx: Transaction) -> DrainView | None:
            drain = tx.lock_drain(host)
            if drain is None or not drain.is_watched:
                return None
            return self._advanced(tx, drain, new_ids, by=by)

        view = await self._engine.decide(decision)
        if view is not None:
            self._told(view)

    # --- what actuators are asked, and what they say -------------------------------------------

    async def questions(self, actuator: str) -> tuple[list[Question], Destinations]:
        """And where VMs may be moved now, whatever actuator does it."""

        def asked(snapshot: Snapshot) -> tuple[list[Question], Destinations]:
            found, drains = [], snapshot.drains()
            for drain in drains:
                found += questions_for(snapshot, drain, actuator)
            return found, destinations(drains)

        return await self._engine.ask(asked)

    async def answer_survey(
        self,
        host: HostName,
        vm: ResourceName,
        *,
        possible: bool,
        reason: str,
        target: str | None,
        by: Actor,
    ) -> DrainView:
        """Changes nothing if it is no longer asked. Raises UnknownDrainError."""

        answer = SurveyAnswer(vm=vm, possible=possible, reason=reason, target=target)
        return await self._answer(
            host, lambda drain, now: progress.surveyed(drain, answer, now=now), by=by
        )

    async def answer_listing(self, host: HostName, listing: HostListing, *, by: Actor) -> DrainView:
        """Changes nothing if it is no longer asked. Raises UnknownDrainError."""
        return await self._answer(host, lambda drain, _: progress.listed(drain, listing), by=by)

    async def _answer(
        self, host: HostName, answered: Callable[[Drain, datetime], Drain], *, by: Actor
    ) -> DrainView:
        new_ids = NewIds(self._new_id)

        def decision(tx: Transaction) -> DrainView:
            drain = tx.lock_drain(host)
            if drain is None:
                raise UnknownDrainError(host)
            told = answered(drain, tx.now)
            if drain.is_watched:
                return self._advanced(tx, told, new_ids, by=by)
            if drain.state is DrainState.PLANNED and told != drain:
                # What the operator reads is corrected. Nothing is begun by that.
                drain = progress.settled(told, now=tx.now)
                tx.put_drain(drain)
            return view_of(tx, drain)

        return self._told(await self._engine.decide(decision))

    def _told(self, view: DrainView) -> DrainView:
        for listener in self._listeners:
            listener(view.drain)
        return view

    # --- one step ------------------------------------------------------------------------------

    def _advanced(
        self, tx: Transaction, drain: Drain, new_ids: Iterable[EventId], *, by: Actor
    ) -> DrainView:
        before = tx.drain(drain.host)
        ids = iter(new_ids)
        standings = _standings(tx, drain)
        drain = progress.reviewed(drain, standings, now=tx.now)
        gone = [move for move in drain.moves if move.state is MoveState.MOVED]
        where = "on {} again" if drain.is_returning else "no longer on {}"
        reason = f"the VM is {where.format(drain.host)}"
        _cancel(tx, gone, standings, reason=reason, by=by)
        drain = progress.settled(drain, now=tx.now)
        due = progress.due(drain, now=tx.now)
        for move, notice in due:
            given = self._given_event(
                tx, drain, move, standings[move.vm], notice=notice, event_id=next(ids), by=by
            )
            moves = tuple(given if each.vm == move.vm else each for each in drain.moves)
            drain = replace(drain, moves=moves)
        if due:
            drain = progress.reviewed(drain, _standings(tx, drain), now=tx.now)
            drain = progress.settled(drain, now=tx.now)
        if drain != before:
            tx.put_drain(drain)
            if before is None or before.state is not drain.state:
                cause = f"host {drain.host}" + (f": {drain.reason}" if drain.reason else "")
                tx.record(f"drain_{drain.state.lower()}", by=by, cause=cause)
        return view_of(tx, drain)

    def _given_event(
        self,
        tx: Transaction,
        drain: Drain,
        move: Move,
        standing: Standing,
        *,
        notice: timedelta,
        event_id: EventId,
        by: Actor,
    ) -> Move:
        order = drain.order
        new = NewEvent(
            id=event_id,
            type=order.type,
            source=EventSource.PLATFORM,
            resources=(move.vm,),
            notice=notice,
            short_notice=order.short_notice,
            description=HOST_MAINTENANCE,
        )
        try:
            scope = tx.load(standing.scope_id)
            save(tx, lifecycle.schedule(scope, new, rules=self._rules, now=tx.now), by=by)
        except RefusalError as refusal:
            return replace(move, state=MoveState.BLOCKED, reason=str(refusal))
        return replace(move, event_id=event_id, tries=move.tries + 1)


def _refuse_over(earlier: Drain | None, order: DrainOrder, *, is_inhabited: bool) -> None:
    if earlier is None:
        return
    if earlier.is_under_way:
        raise DrainUnderWayError(earlier.host)
    if earlier.state is DrainState.EMPTY and not is_inhabited:
        raise HostEmptyError(earlier.host)
    if earlier.is_cordoned and order.dry_run:
        raise DrainInTheWayError(earlier.host, earlier.state)


def _ended(tx: Transaction, drain: Drain, *, by: Actor) -> Drain:
    host, standings = drain.host, _standings(tx, drain)
    _cancel(tx, drain.moves, standings, reason=f"host {host} is no longer being drained", by=by)
    drain = progress.reviewed(drain, _standings(tx, drain), now=tx.now)
    reason = f"ended by {by.name}"
    return replace(drain, state=DrainState.CANCELED, changed_at=tx.now, reason=reason)


def _standings(tx: Transaction, drain: Drain) -> Standings:
    """The VMs of the host first, each with its scope locked."""
    elsewhere = tx.bindings_named([move.vm for move in drain.moves])
    scope_ids = dict.fromkeys((*tx.scopes_on(drain.host), *(each.scope_id for each in elsewhere)))
    events = {move.vm: tx.event(move.event_id) for move in drain.moves if move.event_id is not None}
    wanted = {move.vm for move in drain.moves}
    return {
        vm.name: Standing(
            scope_id=scope.id,
            resource=vm,
            reads=scope.active,
            actuator=tx.actuator_of(vm),
            event=events.get(vm.name),
        )
        for scope in tx.load_all(scope_ids)
        for vm in scope.resources.values()
        if (vm.host == drain.host or vm.name in wanted)
        and vm.state is not ResourceState.DEALLOCATED
    }


def _cancel(
    tx: Transaction, moves: Iterable[Move], standings: Standings, *, reason: str, by: Actor
) -> None:
    """Cancel the events of these that have not started."""
    for move in moves:
        standing = standings.get(move.vm)
        if standing is None or standing.event is None:
            continue
        event = standing.event.event
        if event.status is EventStatus.SCHEDULED:
            scope = tx.load(standing.scope_id)
            change: Change = lifecycle.cancel(scope, event.id, reason=reason, now=tx.now)
            save(tx, change, by=by)
