"""One node: the real service over the simulated store, and what VMs would ask its listener for."""

import asyncio
import ipaddress
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from typing_extensions import override

from forewarned.core.errors import RefusalError
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.rules import Rules
from forewarned.metadata.http.barrier import Barrier
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import Caller, News
from forewarned.service.use_cases import Basis, UseCases
from tests.builders import a_node_record
from tests.simulation import laws
from tests.simulation.clock import NodeClock, TrueTime
from tests.simulation.listener import Connection, Listener, Parts, UnknownVmError
from tests.simulation.processes import Process
from tests.simulation.store.server import SimulatedServer
from tests.simulation.store.store import SimulatedStore
from tests.simulation.weather import NodeConditions, Weather
from tests.stateful.oracle import Shown

T = TypeVar("T")

RULES: Final = Rules()
PATROL: Final = timedelta(days=2)
"""Looks without a change would be most of what a quiet month consists of."""
_ADDRESSES: Final = ipaddress.IPv4Network("10.0.0.0/24")
_AGAIN: Final = 2.0
"""Seconds until a node that could not start is started again."""


class GoneError(Exception):
    """No answer came: the node is not there, or not any more."""


EXPECTED: Final = (GoneError, RefusalError, StoreUnavailableError, UnknownVmError)
"""What may come of a request. Anything else is a defect, whether or not anyone hears of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all nodes stand on."""

    server: SimulatedServer
    true: TrueTime
    weather: Weather
    new_event_id: Callable[[], EventId]
    new_id: Callable[[], str]
    rank: Callable[[str], int]
    opened: Callable[["SimulatedNode"], None]
    """Told of each start, for what else runs in a node."""
    read: Callable[[Caller], None]
    """Told whenever a node notes a read."""
    violated: Callable[[BaseException], None]
    """Told of a law that was broken, and of any failure that has no name."""


class NodeDelivery(BoardDelivery):
    def __init__(self, barrier: Barrier) -> None:
        super().__init__()
        self._barrier = barrier

    @override
    def hear_news(self, news: News) -> None:
        super().hear_news(news)
        self._barrier.fresh(news.began)


class NodeStore(SimulatedStore):
    """Notes which reads it is told of."""

    def __init__(self, name: str, around: Surroundings, conditions: NodeConditions) -> None:
        super().__init__(
            around.server,
            a_node_record(name),
            conditions=conditions,
            rank=lambda: around.rank(name),
            monotonic_ns=around.true.monotonic_ns,
            failed=around.violated,
        )
        self._around = around
        self._noted: dict[ScopeId, datetime] = {}

    @override
    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        await super().mark_read(marks, older_by=older_by)
        now = self._around.true.now()
        try:
            for scope_id in marks:
                laws.i26_reads_are_noted_now_and_then(self._noted, scope_id, now)
                self._noted[scope_id] = now
        except AssertionError as broken:
            self._around.violated(broken)


class SimulatedNode:
    def __init__(self, name: str, around: Surroundings) -> None:
        self.name = name
        self.conditions = NodeConditions(around.weather, around.true)
        self.is_serving = False
        self._cut_off_since: int | None = None
        self._around = around
        self._begin()

    def _begin(self) -> None:
        around = self._around
        self.process = Process(self.name)
        self._is_started = False
        self.clock = NodeClock(around.true, ahead=self.conditions.wall_error)
        self.conditions.begin()
        self.store = NodeStore(self.name, around, self.conditions)
        self._barrier = Barrier(around.weather.balancing, now=around.true.monotonic_ns)
        self.delivery = NodeDelivery(self._barrier)
        basis = Basis(
            rules=RULES,
            new_event_id=around.new_event_id,
            new_id=around.new_id,
            address_range=_ADDRESSES,
        )
        self.application = Application(
            self.store,
            self.clock,
            basis,
            self.delivery,
            shared=self.store,
            history_patrol=PATROL,
        )
        self._listener = Listener(
            Parts(
                store=self.store,
                clock=self.clock,
                true=around.true,
                delivery=self.delivery,
                barrier=self._barrier,
                use_cases=self.use_cases,
                told=around.read,
                cut_off_since=lambda: self._cut_off_since,
            )
        )

    @property
    def use_cases(self) -> UseCases:
        return self.application.use_cases

    @property
    def is_healthy(self) -> bool:
        """Whether it can start events."""
        believes = self.conditions.should_believe(self._around.server.now())
        return self.is_serving and not self.conditions.is_cut_off and believes

    @property
    def is_up_to_date(self) -> bool:
        following = self.store.following
        return self.is_serving and following is not None and following.is_up_to_date

    # --- its life ----------------------------------------------------------------------------

    def start(self) -> None:
        """Does nothing if it is: what has killed it twice starts it twice."""
        if self.process.is_dead:
            self._begin()
        if not self._is_started:
            self._is_started = True
            self.process.spawn(self._open())

    async def _open(self) -> None:
        while True:
            try:
                await self.store.__aenter__()
                await self.application.__aenter__()
                break
            except StoreUnavailableError:
                await asyncio.sleep(_AGAIN)
                # As a supervisor does: nothing of the attempt is left.
                self.kill()
                self.start()
                return
        self.is_serving = True
        self._around.opened(self)

    def kill(self) -> None:
        self.is_serving = False
        self.clock.stop()
        self.store.die()
        self.process.kill()

    async def stop(self) -> None:
        """As a server is told to."""
        self.is_serving = False
        await self.process.spawn(self.application.__aexit__())
        self.kill()

    # --- what it answers ---------------------------------------------------------------------

    async def serve(self, answer: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """In the node's own process. Raises GoneError."""
        if not self.is_serving:
            raise GoneError(self.name)
        answering = self.process.spawn(answer())
        # A client that hangs up is told nothing, and what it asked for is done all the same.
        answering.add_done_callback(self._look_at_error)
        await asyncio.wait([answering])
        if answering.cancelled():
            raise GoneError(self.name)
        return answering.result()

    def _look_at_error(self, task: "asyncio.Task[Any]") -> None:
        """Whoever asked may be gone: then no one else would."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, EXPECTED) and self.is_serving:
            self._around.violated(error)

    def connect(self, name: str, *, address: str = "10.255.0.9") -> Connection:
        """It ends with the node's process."""
        process = self.process
        return Connection(name, lambda: process.is_dead, address=address)

    async def poll(self, connection: Connection, version: str) -> Shown | None:
        """None for any answer but a document."""
        return await self._listener.poll(connection, version)

    async def approve(self, connection: Connection, event_ids: Sequence[EventId]) -> None:
        """Raises RefusalError, UnknownVmError, StoreUnavailableError."""
        await self._listener.approve(connection, event_ids)

    def note_looks(self) -> None:
        """Those since the last one, none of which has found anything."""
        self._listener.note_looks()

    def note_reach(self) -> None:
        """To be called whenever the store may have come within reach, or gone out of it."""
        is_cut_off = self.conditions.is_cut_off or not self._around.server.is_up
        if not is_cut_off:
            self._cut_off_since = None
        elif self._cut_off_since is None:
            self._cut_off_since = self._around.true.monotonic_ns()
