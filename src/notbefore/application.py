"""The use cases, wired together over one store and one clock. Listeners are put on top of it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final, Self

from typing_extensions import override

from notbefore import logs
from notbefore.actuators.simulated import SimulatedActuator, Timing
from notbefore.clock import SystemClock, VirtualClock
from notbefore.core.ids import EventId
from notbefore.core.model import Document, EventType
from notbefore.core.rules import Rules
from notbefore.metadata.responses import Rendered
from notbefore.service.approving import Approving
from notbefore.service.board import Board
from notbefore.service.carrying import Carrying, hand_over
from notbefore.service.deciding import Decider
from notbefore.service.directory import MemoryDirectory
from notbefore.service.explaining import CompletedBy, Explaining
from notbefore.service.faults import Faults
from notbefore.service.fleet import Fleet, Network
from notbefore.service.ports import (
    HistoryFilter,
    Listener,
    Observer,
    Snapshot,
    Store,
    StoreUnavailableError,
)
from notbefore.service.readiness import KeptReadiness
from notbefore.service.reading import Equip, Reading, bare
from notbefore.service.scheduling import Scheduling
from notbefore.service.timekeeping import MovableClock, Timekeeping
from notbefore.service.waking import Waker
from notbefore.settings import Settings

_log = logging.getLogger(__name__)

_CLOCK: Final = "clock when it was last moved or stopped"


class Engine:
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
        self.decider = Decider(store, observer)
        self.approving = Approving(self.decider, rules)
        self.scheduling = Scheduling(self.decider, rules, new_id)
        self.carrying = Carrying(self.decider)
        completed_by = CompletedBy.OPERATOR if timings is None else CompletedBy.SIMULATION
        self.explaining = Explaining(self.decider, completed_by=completed_by)
        self.reading = Reading(self.decider, clock, equip)
        self.readiness = KeptReadiness(self.decider)
        self.fleet = Fleet(self.decider, self.reading, address_range)
        if movable is None and isinstance(clock, VirtualClock):
            movable = clock
        self.timekeeping = Timekeeping(clock, movable, self._record_time)
        self._waker = Waker(self.decider, self.reading, rules, clock, observer)
        self._actuator = (
            None if timings is None else SimulatedActuator(clock, self.carrying, timings)
        )
        # VMs hear of a change before the actuators that carry it out do.
        for listener in (*audience, logs.log_commit, self._waker.hear, self.readiness.hear):
            self.decider.tell(listener)
        if observer is not None:
            self.decider.tell(observer.hear)
        if self._actuator is not None:
            self.decider.tell(partial(hand_over, actuator=self._actuator))

    async def __aenter__(self) -> Self:
        """Time must not move before this is done: nothing may fall due that nobody knows of."""
        last_instant = await self.decider.ask(_last_instant)
        if last_instant is not None:
            self.clock.catch_up(last_instant)
        self._waker.set(await self.decider.ask(self._take_up))
        if self._actuator is not None:
            await self.carrying.resume(self._actuator)
        self.reading.flush_regularly()
        return self

    async def __aexit__(self, *_: object) -> None:
        # What is lost with an unavailable store is made good by the next poll of each scope.
        with suppress(StoreUnavailableError):
            await self.reading.flush()
            await self._record_time(self.clock.now())
        await self.decider.finish()

    async def _record_time(self, instant: datetime) -> None:
        await self.decider.decide(lambda tx: tx.put_note(_CLOCK, instant.isoformat()))

    def _take_up(self, snapshot: Snapshot) -> datetime | None:
        return snapshot.next_wake()


class Application(Engine):
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
