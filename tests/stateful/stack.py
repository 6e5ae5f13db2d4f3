"""The whole product below HTTP, on a clock that stands still, and ways to end it and begin again."""

import ipaddress
import logging
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from typing_extensions import override

from forewarned.actuators.simulated import Timing
from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.ids import EventId
from forewarned.core.model import EventType, Resource
from forewarned.core.rules import Rules
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.lifecycle.assignment import simulated
from forewarned.service.lifecycle.ports import Timer
from forewarned.service.ports import Listener, Store
from forewarned.storage import SqliteStore
from tests.bases import a_basis
from tests.builders import MINUTE, SECOND
from tests.touching import TouchingStore

TIMINGS: Final = {
    EventType.FREEZE: Timing(impact=9 * SECOND, span=5 * MINUTE),
    EventType.REBOOT: Timing(impact=MINUTE, span=10 * MINUTE),
    EventType.REDEPLOY: Timing(impact=2 * MINUTE, span=10 * MINUTE),
    EventType.PREEMPT: Timing(impact=SECOND, span=30 * SECOND),
    EventType.TERMINATE: Timing(impact=SECOND, span=MINUTE),
}
ADDRESSES: Final = ipaddress.IPv4Network("10.0.0.0/24")


def rack1(_: Resource) -> str:
    return "rack1"


class SplitSecondClock(VirtualClock):
    """Stands anywhere, not on whole seconds only: a clock that runs may be asked at any instant."""

    def __init__(self, start: datetime) -> None:
        super().__init__(start, speed=0)
        self._set(start, 0)

    @override
    def catch_up(self, instant: datetime) -> None:
        self._set(max(instant, self.now()), 0)

    def jump(self, by: timedelta) -> None:
        """Be later, with the timers on the way still to be called."""
        self._set(self.now() + by, 0)

    @override
    async def step(self, by: timedelta) -> None:
        async with self._turn:
            target = self.now() + by
            while (instant := self._agenda.next_at()) is not None and instant <= target:
                self._set(max(self.now(), instant), 0)
                await self._call_next(target)
            self._set(target, 0)


class Dial:
    """The clock of the day, for a store that outlives the clock it was made with."""

    def __init__(self, clock: SplitSecondClock) -> None:
        self.clock = clock

    def now(self) -> datetime:
        return self.clock.now()

    def at(self, instant: datetime, call: Callable[[], Awaitable[None]]) -> Timer:
        return self.clock.at(instant, call)

    def watch(self, watcher: Callable[[], None]) -> None:
        self.clock.watch(watcher)


class Failures(logging.Handler):
    """What the clock could only log: a timer that failed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


class Stack(ABC):
    """One server at a time, over a store that stays."""

    def __init__(
        self,
        *,
        start: datetime,
        rules: Rules,
        is_simulated: bool,
        ids: Iterable[EventId],
        listener: Listener,
    ) -> None:
        """The listener hears of each commit last, when everybody else has."""
        self.rules = rules
        self._listener = listener
        self.dial = Dial(SplitSecondClock(start))
        self.failures = Failures()
        self._timings = TIMINGS if is_simulated else None
        self.is_simulated = is_simulated
        self.actuator_of = simulated if is_simulated else rack1
        self._ids = iter(ids)
        self._next_ids: list[EventId] = []
        self._prepare()

    @property
    def now(self) -> datetime:
        return self.dial.now()

    async def open(self) -> None:
        logging.getLogger("forewarned.clock").addHandler(self.failures)
        await self._begin(await self._open_store())

    async def stop(self, *, downtime: timedelta) -> None:
        """Stop as a server is told to, and start again later on the same store."""
        await self.application.__aexit__()
        await self._close_store()
        self._wait(downtime)
        await self._begin(await self._open_store())

    async def crash(self, *, downtime: timedelta) -> None:
        """End without a word, and start again later on what had reached the store."""
        await self._abandon_store()
        self._wait(downtime)
        await self._begin(await self._open_store())

    async def close(self) -> None:
        logging.getLogger("forewarned.clock").removeHandler(self.failures)
        await self._close_store()

    async def let_due_timers_run(self) -> None:
        await self.dial.clock.step(timedelta(0))

    def give_next(self, event_id: EventId) -> None:
        """Let the next event have this id."""
        self._next_ids.append(event_id)

    def take_back(self, event_id: EventId) -> None:
        if event_id in self._next_ids:
            self._next_ids.remove(event_id)

    def _new_id(self) -> EventId:
        return self._next_ids.pop() if self._next_ids else next(self._ids)

    def _wait(self, downtime: timedelta) -> None:
        # A new clock: timers die with the server that set them.
        self.dial.clock = SplitSecondClock(self.now + downtime)

    async def _begin(self, opened: Store) -> None:
        store = self.store = TouchingStore(opened)
        basis = a_basis(self.rules, new_event_id=self._new_id, address_range=ADDRESSES)
        self.documents = BoardDelivery()
        self.application = Application(
            store, self.dial.clock, basis, self.documents, timings=self._timings
        )
        self.use_cases = self.application.use_cases
        self.use_cases.engine.tell(self._listener)
        await self.application.__aenter__()

    @abstractmethod
    def _prepare(self) -> None: ...

    @abstractmethod
    async def _open_store(self) -> Store: ...

    @abstractmethod
    async def _close_store(self) -> None: ...

    @abstractmethod
    async def _abandon_store(self) -> None: ...


class MemoryStack(Stack):
    """The store stays open, and all of it survives: only what the services hold is lost."""

    @override
    def _prepare(self) -> None:
        next_wake = partial(lifecycle.next_wake, rules=self.rules)
        self._kept = SqliteStore(None, self.dial, next_wake=next_wake, actuator_of=self.actuator_of)
        self._is_open = False

    @override
    async def _open_store(self) -> Store:
        if not self._is_open:
            await self._kept.__aenter__()
            self._is_open = True
        return self._kept

    @override
    async def _close_store(self) -> None:
        pass

    @override
    async def _abandon_store(self) -> None:
        pass

    @override
    async def close(self) -> None:
        await super().close()
        await self._kept.__aexit__()


class SqliteStack(Stack):
    """The store is a file. A crash leaves it as it was while the server ran."""

    @override
    def _prepare(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="forewarned-stateful-"))
        self._opened = AsyncExitStack()

    @property
    def _file(self) -> Path:
        return self._folder / "forewarned.db"

    @override
    async def _open_store(self) -> Store:
        next_wake = partial(lifecycle.next_wake, rules=self.rules)
        store = SqliteStore(
            self._file, self.dial, next_wake=next_wake, actuator_of=self.actuator_of
        )
        return await self._opened.enter_async_context(store)

    @override
    async def _close_store(self) -> None:
        await self._opened.aclose()

    @override
    async def _abandon_store(self) -> None:
        files = (self._file, self._file.with_name(f"{self._file.name}-wal"))
        left = {file: file.read_bytes() for file in files}
        # Closing writes the log back into the database, and removes it. A server that crashes does
        # neither. The files stay the same ones: copies would be taken for a restored backup.
        await self._opened.aclose()
        for file, content in left.items():
            file.write_bytes(content)

    @override
    async def close(self) -> None:
        await super().close()
        shutil.rmtree(self._folder)
