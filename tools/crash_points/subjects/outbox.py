"""The outbox and the publisher: each message is delivered, in order, and twice if unrecorded."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from forewarned.clock import VirtualClock
from forewarned.core.change import Change
from forewarned.core.ids import ScopeId
from forewarned.core.transitions import Approved
from forewarned.publishing.messenger import TargetMessenger
from forewarned.publishing.ports import Target
from forewarned.publishing.publisher import Publisher
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Outcome
from forewarned.storage import SqliteStore
from tests.builders import DAY, NOON, OPERATOR, SECOND, a_scope, an_event, emptied
from tests.service.subscriptions.messages import a_subscription
from tools.crash_points.subject import STOPPED, Life, Tell, Verdict, compare, those
from tools.crash_points.subjects.answers import ask
from tools.crash_points.subjects.store import opened

DELIVERED: Final = "delivered"
MESSAGES: Final = 3
_SCOPE: Final = ScopeId("scope1")
_EVENT: Final = an_event()
_PATIENCE: Final = 1.0
"""Seconds that a publisher goes on whose disk may be full for good."""
_MOST_TURNS: Final = 40
"""How often to look before time goes on."""
_LONG: Final = 20.0
"""For one whose disk is not: far longer than it takes."""


class ToldTarget:
    """Takes every message, and tells of it."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def __call__(self, subscription: Subscription, /) -> Target:  # noqa: ARG002  # for all of them
        return self

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome:  # noqa: ARG002
        self._tell(f"{DELIVERED} {message.at:%S}")
        return Delivered()


class OutboxSubject:
    name = "outbox"
    title = "the outbox and its publisher"

    def prepare(self, folder: Path) -> None:
        asyncio.run(_fill(folder))

    def live(self, folder: Path, tell: Tell) -> None:
        try:
            asyncio.run(_live(folder, tell))
        except StoreUnavailableError as error:
            tell(f"{STOPPED} {error}")

    def attend(self, life: Life) -> list[str]:
        return life.told()

    def judge(self, folder: Path, told: Sequence[str]) -> Verdict:
        recovered, after = asyncio.run(_settled(folder))
        verdict = compare(told, recovered)
        before = those(told, DELIVERED)
        delivered = [*before, *those(after, DELIVERED)]
        first = list(dict.fromkeys(delivered))
        missing = [each for each in recovered if each not in delivered]
        again = list(delivered)
        for each in first:
            again.remove(each)
        # What was delivered last before the end, and not recorded.
        allowed = before[-1:]
        return Verdict(
            lost=[*verdict.lost, *(f"message {each}" for each in missing)],
            doubled=[*verdict.doubled, *(f"message {m}" for m in again if [m] != allowed)]
            + ([f"message {again[0]} more than twice"] if len(again) > 1 else []),
            wrong=[
                *verdict.wrong,
                *([] if first == sorted(first) else [f"delivered in the order {first}"]),
                *(f"delivered, and not there: {each}" for each in first if each not in recovered),
            ],
        )


async def _fill(folder: Path) -> None:
    async with _opened(folder) as (store, _):
        await store.transact(_settle_in)


def _settle_in(tx: Transaction) -> None:
    scope = a_scope(_EVENT)
    tx.create(emptied(scope))
    tx.save(Change(scope=scope), by=OPERATOR)
    tx.put_subscription(a_subscription("ops"))


async def _live(folder: Path, tell: Tell) -> None:
    async with _opened(folder) as (store, clock), _publishing(store, clock, tell) as engine:
        for number in range(MESSAGES):
            if await _happen(engine, number, tell):
                # One after another, so that each run makes the same calls.
                await _until_delivered(engine, clock, patience=_PATIENCE)


async def _happen(engine: Engine, number: int, tell: Tell) -> bool:
    """Whether it is acknowledged."""
    at = NOON + number * SECOND

    def decision(tx: Transaction) -> None:
        fact = Approved(scope_id=_SCOPE, at=at, event=_EVENT)
        tx.save(Change(scope=tx.load(_SCOPE), transitions=(fact,)), by=OPERATOR)

    return await ask(f"{at:%S}", lambda: engine.decide(decision), tell)


async def _settled(folder: Path) -> tuple[list[str], list[str]]:
    """What is recovered, and what is told once all is delivered."""
    told: list[str] = []
    async with _opened(folder) as (store, clock):
        recovered = await store.read(_approvals)
        async with _publishing(store, clock, told.append) as engine:
            await _until_delivered(engine, clock, patience=_LONG)
    return recovered, told


async def _until_delivered(engine: Engine, clock: VirtualClock, *, patience: float) -> None:
    """Or until it is clear that something never will be: then the laws say what."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            for turn in count(1):
                if await _is_settled(engine, clock):
                    break
                if turn % _MOST_TURNS == 0:
                    # For what is tried again after a pause; not sooner, as time brings turns.
                    await clock.step(SECOND)
                await asyncio.sleep(0.005)


async def _is_settled(engine: Engine, clock: VirtualClock) -> bool:
    """Whether it is on record of every message that it was delivered."""
    try:
        rows = await engine.ask(_approvals)
        health = await engine.ask(lambda s: s.subscription_health(now=clock.now()))
    except StoreUnavailableError:
        return False
    return health["ops"].delivered >= len(rows)


def _approvals(snapshot: Snapshot) -> list[str]:
    rows = snapshot.history(HistoryFilter(action="approved", limit=100))
    return [f"{row.at:%S}" for row in rows]


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[tuple[SqliteStore, VirtualClock]]:
    async with VirtualClock(NOON, speed=0) as clock, opened(folder, clock) as store:
        yield store, clock


@asynccontextmanager
async def _publishing(store: SqliteStore, clock: VirtualClock, tell: Tell) -> AsyncIterator[Engine]:
    engine = Engine(store)
    publisher = Publisher(
        engine,
        TargetMessenger(ToldTarget(tell)),
        clock,
        node="",
        jitter=lambda: 0.5,
        keep_undelivered=30 * DAY,
        # The clock stands still.
        gather=0 * SECOND,
    )
    engine.tell(publisher.hear)
    async with publisher:
        yield engine
