"""The assembly: store, clock, use cases, timers and actuators, put together in one place.

Writer, single process, pytest plugin and tests use this one. They differ in their store, and in
how documents reach VMs: from a Board in the same process, or over the feed.
"""

import random
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol, Self

from forewarned.actuators.simulated import SimulatedActuator, Timing
from forewarned.clock import SystemClock, VirtualClock, monotonic, wall_clock
from forewarned.core.copying import replace
from forewarned.core.model import Document, EventType
from forewarned.metadata.http.responses import Rendered, render
from forewarned.publishing.messenger import TargetMessenger
from forewarned.publishing.publisher import Publisher
from forewarned.publishing.targets.kinds import make_target
from forewarned.runtime import logs
from forewarned.runtime.settings import Mode, Settings
from forewarned.service.board import Board
from forewarned.service.clock_control import ClockControl, MovableClock
from forewarned.service.directory import MemoryDirectory
from forewarned.service.drains.follower import DrainFollower
from forewarned.service.drains.host_drains import HostDrains
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.events.approval import Approvals
from forewarned.service.events.event_ids import EventIds
from forewarned.service.events.explain import CompletedBy, Explainer
from forewarned.service.events.schedule import Scheduler
from forewarned.service.faults import Faults
from forewarned.service.fleet.apply import LARGE, SHARED_LARGE, Fleet
from forewarned.service.history.keeper import PATROL, HistoryKeeper
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.lifecycle.actuation import Actuation, hand_over
from forewarned.service.lifecycle.guest_returns import LIMIT, GuestReturns
from forewarned.service.lifecycle.tasks import Tasks
from forewarned.service.lifecycle.waker import BATCH, SHARED_BATCH, Waker
from forewarned.service.listings import HistoryFilter
from forewarned.service.memory_readiness import MemoryReadiness
from forewarned.service.ports import Following, Observer, SharedStore, Snapshot, Store
from forewarned.service.records import Commit, News
from forewarned.service.requests.watch import RequestWatch
from forewarned.service.sources.intake import Sources
from forewarned.service.subscriptions.subscriptions import Subscriptions
from forewarned.service.use_cases import Basis, UseCases
from forewarned.targets.addresses import Reach
from forewarned.targets.signatures import SECRET_BYTES, new_secret

Clock = SystemClock | VirtualClock

_STAGGER: Final = timedelta(milliseconds=25)
"""Between the nodes' looks for what is due: mostly the first has done it all."""
_CLOCK: Final = "clock when it was last moved or stopped"


class Delivery(Protocol):
    """How documents reach VMs."""

    def hear(self, commit: Commit) -> None: ...

    def hear_news(self, news: News) -> None:
        """What any node has committed to a shared store."""

    def load(self, snapshot: Snapshot) -> None:
        """Take in what the store holds. Called once, before time moves."""

    async def read_anew(self, engine: Engine) -> None:
        """Take in what the store holds, instead of all that was taken in before."""

    def movable(self, clock: VirtualClock) -> MovableClock:
        """The clock as operators move it."""


class BoardDelivery:
    """From a Board in this process."""

    def __init__(self, render: Callable[[Document, str], Rendered] = render) -> None:
        self.board = Board(render)
        self.directory = MemoryDirectory()

    def hear(self, commit: Commit) -> None:
        self.board.hear(commit)
        self.directory.hear(commit)

    def hear_news(self, news: News) -> None:
        for page in news.pages:
            self.board.show(page)
        if news.bound or news.unbound:
            self.directory.move(news.bound, gone=news.unbound)

    def load(self, snapshot: Snapshot) -> None:
        for page in snapshot.pages():
            self.board.show(page)
        self.directory.settle(snapshot.scope_places())
        self.directory.put_first(snapshot.first_vm())

    async def read_anew(self, engine: Engine) -> None:
        # Read on the store's thread, and shown on this one: VMs read the Board meanwhile.
        pages = await engine.ask(lambda snapshot: list(snapshot.pages()))
        places = await engine.ask(lambda snapshot: list(snapshot.scope_places()))
        for page in pages:
            self.board.show(page)
        directory = MemoryDirectory()
        directory.settle(places)
        self.directory.take_over(directory)

    def movable(self, clock: VirtualClock) -> MovableClock:
        return clock


class Application:
    """The use cases over one store and one clock, with the timers and actuators that drive them.

    `async with` loads what the store holds, and saves at the end what only memory has.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        basis: Basis,
        delivery: Delivery,
        *,
        timings: Mapping[EventType, Timing] | None = None,
        observer: Observer | None = None,
        faults: Faults | None = None,
        shared: SharedStore | None = None,
        guest_return: timedelta = LIMIT,
        reach: Reach = Reach.LOOPBACK,
        history_retention: timedelta | None = None,
        history_patrol: timedelta = PATROL,
    ) -> None:
        """`timings` are those of the simulated actuator; None where operators complete events.

        `guest_return` is how long the guest of a restarted VM may take to read again.
        `history_retention` is how long history is kept; None for ever. `history_patrol` is how
        often it is looked at without a change.
        Without `faults` none can be injected. `shared` is the store, if other nodes use it too.
        `reach` is where messages of subscriptions may go.
        """
        self.clock = clock
        self._shared = shared
        self._opened = AsyncExitStack()
        self.following: Following | None = None
        """How this node keeps up with the others; None where it is alone, or not open."""
        engine, rules = Engine(store, observer, monotonic), basis.rules
        actuation, tasks = Actuation(engine), Tasks(engine)
        self._actuator = None if timings is None else SimulatedActuator(clock, actuation, timings)
        activation = Activation(engine, clock, rules)
        movable = delivery.movable(clock) if isinstance(clock, VirtualClock) else None
        large = LARGE if shared is None else SHARED_LARGE
        completed_by = CompletedBy.OPERATOR if timings is None else CompletedBy.SIMULATION
        readiness = MemoryReadiness(engine, now=wall_clock)
        drains = HostDrains(engine, rules, basis.new_event_id)
        self._messenger = TargetMessenger(partial(make_target, reach=reach))
        self._history = HistoryKeeper(engine, retention=history_retention, patrol=history_patrol)
        self.use_cases = UseCases(
            engine=engine,
            basis=basis,
            scheduler=Scheduler(engine, rules, basis.new_event_id),
            approvals=Approvals(engine, rules, self._actuator),
            actuation=actuation,
            tasks=tasks,
            drains=drains,
            explainer=Explainer(engine, completed_by=completed_by),
            activation=activation,
            readiness=readiness if shared is None else shared.readiness,
            fleet=Fleet(engine, activation, basis.address_range, large=large),
            sources=Sources(engine),
            subscriptions=Subscriptions(
                engine,
                self._messenger,
                real_now=wall_clock,
                new_id=basis.new_id,
                new_secret=_new_secret,
            ),
            faults=faults or Faults(allowed=False),
            requests=RequestWatch(allowed=faults is not None and faults.allowed),
            clock_control=ClockControl(clock, movable, self._record_time),
            history=self._history,
        )
        self._delivery = delivery
        batch = BATCH if shared is None else SHARED_BATCH
        self._waker = Waker(engine, activation, rules, clock, observer, batch=batch)
        # VMs hear of a change before the actuators that carry it out do.
        engine.tell(delivery.hear if shared is None else self._hear_own)
        engine.tell(logs.log_commit)
        if shared is None:
            engine.tell(self._waker.hear)
            engine.tell(readiness.hear)
        if observer is not None:
            engine.tell(observer.hear)
        self._returns = GuestReturns(engine, tasks, activation, clock, limit=guest_return)
        self._drains = DrainFollower(engine, drains, clock)
        drains.tell(self._drains.hear_drain)
        if shared is None:
            engine.tell(self._returns.hear)
            engine.tell(self._drains.hear)
            engine.tell(self._history.hear)
        else:
            engine.tell_history(self._returns)
            engine.tell_history(self._drains)
            engine.tell_history(self._history)
        if self._actuator is not None:
            engine.tell(partial(hand_over, actuator=self._actuator))

    async def __aenter__(self) -> Self:
        """Time must not move before this is done: nothing may fall due unnoticed."""
        ask = self.use_cases.engine.ask
        if self._shared is not None:
            await self._join(self._shared)
            await self._history.__aenter__()
            return self
        last_instant = await ask(_last_instant)
        if last_instant is not None:
            self.clock.catch_up(last_instant)
        self._waker.set(await ask(self._load))
        await self._returns.resume()
        self._drains.resume()
        if self._actuator is not None:
            await self.use_cases.actuation.resume(self._actuator)
        await self._history.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.use_cases.activation.finish()
        if self._shared is None:
            with suppress(StoreUnavailableError):
                await self._record_time(self.clock.now())
        await self._history.__aexit__()
        await self.use_cases.engine.finish()
        await self._opened.aclose()

    @asynccontextmanager
    async def publishing(self, *, keep_undelivered: timedelta) -> AsyncIterator[None]:
        """Deliver the messages of subscriptions while the block runs."""
        engine, clock = self.use_cases.engine, self.clock
        async with AsyncExitStack() as stack:
            # Whatever an emulator's clock does, those who are told live in real time.
            if not isinstance(clock, SystemClock):
                clock = await stack.enter_async_context(SystemClock())
            publisher = Publisher(
                engine,
                self._messenger,
                clock,
                node="" if self._shared is None else self._shared.node.id,
                jitter=random.random,
                keep_undelivered=keep_undelivered,
            )
            engine.tell(publisher.hear)
            engine.tell_history(publisher)
            await stack.enter_async_context(publisher)
            yield

    # --- among several nodes -----------------------------------------------------------------

    async def _join(self, store: SharedStore) -> None:
        """Follow from before what is read here, so that nothing is missed between the two."""
        engine = self.use_cases.engine
        async with AsyncExitStack() as stack:
            following = store.follow(hear=self._hear_news, read_anew=self._read_anew)
            self.following = await stack.enter_async_context(following)
            if isinstance(self.clock, SystemClock):
                self.clock.begin_at(await engine.ask(lambda snapshot: snapshot.now))
            await engine.ask(self._delivery.load)
            self._opened = stack.pop_all()
        engine.follow(self.following)
        await self._returns.resume()
        self._drains.resume()
        self.following.go()

    def _hear_own(self, commit: Commit) -> None:
        """Where VMs are is left to the news: commits of several connections come in any order."""
        self._delivery.hear(replace(commit, bound=(), unbound=()))

    def _hear_news(self, news: News) -> None:
        self._delivery.hear_news(news)
        if isinstance(self.clock, SystemClock):
            self.clock.follow(news.now)
        if news.history:
            self.use_cases.engine.hear_history(news.history)
        instant = news.next_wake
        # A clock that is ahead of the store's would wake scopes in vain, again and again.
        if instant is not None and instant > news.now and instant <= self.clock.now():
            return
        self._waker.set(None if instant is None else instant + news.rank * _STAGGER)

    async def _read_anew(self) -> None:
        engine = self.use_cases.engine
        await self._delivery.read_anew(engine)
        engine.hear_gap()

    async def _record_time(self, instant: datetime) -> None:
        await self.use_cases.engine.decide(lambda tx: tx.put_note(_CLOCK, instant.isoformat()))

    def _load(self, snapshot: Snapshot) -> datetime | None:
        self._delivery.load(snapshot)
        return snapshot.next_wake()


def make_clock(settings: Settings) -> Clock:
    speed = settings.clock.speed
    return SystemClock() if speed is None else VirtualClock(speed=speed)


def basis_of(settings: Settings) -> Basis:
    return Basis(
        rules=settings.rules(),
        new_event_id=EventIds(time.time_ns, secrets.randbits),
        new_id=_new_id,
        address_range=settings.address_range,
    )


def simulated_timings(settings: Settings) -> dict[EventType, Timing] | None:
    """How long what an emulator simulates takes; None in service mode."""
    if settings.mode is Mode.SERVICE:
        return None
    return {
        type_: Timing(impact=settings.impacts().get(type_, span), span=span)
        for type_, span in settings.settles().items()
    }


def _new_id() -> str:
    return str(uuid.uuid4())


def _new_secret() -> str:
    return new_secret(secrets.token_bytes(SECRET_BYTES))


def new_session_id() -> str:
    """Impossible to guess: a browser that sends it is signed in."""
    return secrets.token_urlsafe(32)


def _last_instant(snapshot: Snapshot) -> datetime | None:
    """The latest time the store knows of: a clock that starts behind it would go back."""
    instants = [row.at for row in snapshot.history(HistoryFilter(limit=1))]
    noted = snapshot.note(_CLOCK)
    if noted is not None:
        instants.append(datetime.fromisoformat(noted))
    return max(instants, default=None)
