"""The use cases, wired together over one store and one clock. Listeners are put on top of it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final, Self

from typing_extensions import override

from forewarned.actuators.simulated import SimulatedActuator, Timing
from forewarned.clock import SystemClock, VirtualClock
from forewarned.core.ids import EventId
from forewarned.core.model import Document, EventType
from forewarned.core.rules import Rules
from forewarned.metadata.http.responses import Rendered
from forewarned.runtime import logs
from forewarned.runtime.settings import Settings
from forewarned.service.board import Board
from forewarned.service.clock_control import ClockControl, MovableClock
from forewarned.service.directory import MemoryDirectory
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.events.approval import Approvals
from forewarned.service.events.explain import CompletedBy, Explainer
from forewarned.service.events.schedule import Scheduler
from forewarned.service.faults import Faults
from forewarned.service.fleet.apply import Fleet, Network
from forewarned.service.lifecycle.activation import Activation, Equip, bare
from forewarned.service.lifecycle.actuation import Actuation, hand_over
from forewarned.service.lifecycle.waker import Waker
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Listener, Observer, Snapshot, Store
from forewarned.service.readiness import KeptReadiness

_log = logging.getLogger(__name__)

_CLOCK: Final = "clock when it was last moved or stopped"


class UseCases:
    """The use cases. `async with` takes up what the store holds, and puts down what memory has."""

    def __init__(
        self,
        store: Store,
        clock: SystemClock | VirtualClock,
        *,
        rules: Rules,
        new_id: Callable[[], EventId],
        timings: Mapping[EventType, Timing] | None,
        address_range: Network,
        audience: Sequence[Listener],
        observer: Observer | None = None,
        movable: MovableClock | None = None,
        faults: Faults | None = None,
        equip: Equip = bare,
    ) -> None:
        """`timings` are those of simulated work; None where people complete events themselves.

        The audience is whoever shows documents to VMs. `movable` is the same clock for people to
        move, where that is more than moving the clock. Without `faults` there can be none.
        `equip` says what VMs are told they have, beside an interface each.
        """
        self.clock = clock
        self.faults = faults or Faults(allowed=False)
        self.rules = rules
        self.engine = Engine(store, observer)
        self.approvals = Approvals(self.engine, rules)
        self.scheduler = Scheduler(self.engine, rules, new_id)
        self.actuation = Actuation(self.engine)
        completed_by = CompletedBy.OPERATOR if timings is None else CompletedBy.SIMULATION
        self.explainer = Explainer(self.engine, completed_by=completed_by)
        self.reading = Activation(self.engine, clock, equip)
        self.readiness = KeptReadiness(self.engine)
        self.fleet = Fleet(self.engine, self.reading, address_range)
        if movable is None and isinstance(clock, VirtualClock):
            movable = clock
        self.clock_control = ClockControl(clock, movable, self._record_time)
        self._waker = Waker(self.engine, self.reading, rules, clock, observer)
        self._actuator = (
            None if timings is None else SimulatedActuator(clock, self.actuation, timings)
        )
        # VMs hear of a change before the actuators that carry it out do.
        for listener in (*audience, logs.log_commit, self._waker.hear, self.readiness.hear):
            self.engine.tell(listener)
        if observer is not None:
            self.engine.tell(observer.hear)
        if self._actuator is not None:
            self.engine.tell(partial(hand_over, actuator=self._actuator))

    async def __aenter__(self) -> Self:
        """Time must not move before this is done: nothing may fall due that nobody knows of."""
        last_instant = await self.engine.ask(_last_instant)
        if last_instant is not None:
            self.clock.catch_up(last_instant)
        self._waker.set(await self.engine.ask(self._take_up))
        if self._actuator is not None:
            await self.actuation.resume(self._actuator)
        self.reading.flush_regularly()
        return self

    async def __aexit__(self, *_: object) -> None:
        # What is lost with an unavailable store is made good by the next poll of each scope.
        with suppress(StoreUnavailableError):
            await self.reading.flush()
            await self._record_time(self.clock.now())
        await self.engine.finish()

    async def _record_time(self, instant: datetime) -> None:
        await self.engine.decide(lambda tx: tx.put_note(_CLOCK, instant.isoformat()))

    def _take_up(self, snapshot: Snapshot) -> datetime | None:
        return snapshot.next_wake()


class Application(UseCases):
    """The use cases and what VMs see of them, in one process."""

    def __init__(
        self,
        store: Store,
        clock: SystemClock | VirtualClock,
        *,
        rules: Rules,
        render: Callable[[Document, str], Rendered],
        new_id: Callable[[], EventId],
        timings: Mapping[EventType, Timing] | None,
        address_range: Network,
        observer: Observer | None = None,
        faults: Faults | None = None,
        equip: Equip = bare,
    ) -> None:
        self.board = Board(render)
        self.directory = MemoryDirectory()
        super().__init__(
            store,
            clock,
            rules=rules,
            new_id=new_id,
            timings=timings,
            address_range=address_range,
            audience=(self.board.hear, self.directory.hear),
            observer=observer,
            faults=faults,
            equip=equip,
        )

    @override
    def _take_up(self, snapshot: Snapshot) -> datetime | None:
        for page in snapshot.pages():
            self.board.show(page)
        self.directory.settle(snapshot.scope_places())
        self.directory.put_first(snapshot.first_vm())
        return super()._take_up(snapshot)


def simulated_timings(settings: Settings) -> dict[EventType, Timing]:
    """How long what an emulator pretends to do takes."""
    return {
        type_: Timing(impact=settings.impacts().get(type_, span), span=span)
        for type_, span in settings.settles().items()
    }


def _last_instant(snapshot: Snapshot) -> datetime | None:
    """The latest time the store knows of: a clock that starts behind it would go back."""
    instants = [row.at for row in snapshot.history(HistoryFilter(limit=1))]
    noted = snapshot.note(_CLOCK)
    if noted is not None:
        instants.append(datetime.fromisoformat(noted))
    return max(instants, default=None)
