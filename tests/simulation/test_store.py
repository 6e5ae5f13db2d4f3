"""What nodes on the simulated store see of each other, beyond what the contract of stores says."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from typing_extensions import override

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.ids import ScopeId
from forewarned.core.rules import Rules
from forewarned.service.errors import StoreUnavailableError, UnknownOutcomeError
from forewarned.service.ports import Transaction
from forewarned.service.records import News
from tests.bases import own_actuator
from tests.builders import NOON, OPERATOR, a_node_record, a_scope, an_event
from tests.simulation.store.conditions import Calm, Fate
from tests.simulation.store.server import SimulatedServer
from tests.simulation.store.store import SimulatedStore
from tests.storage.store_calls import keep, load

HERE = ScopeId("scope1")


class Rough(Calm):
    """Fates one after another, then all is fine; something may happen while a commit is sent."""

    def __init__(self, *fates: Fate) -> None:
        self._fates = list(fates)
        self.happening: Callable[[], None] | None = None
        self._trips = 0

    @override
    async def round_trip(self) -> None:
        await asyncio.sleep(0)
        self._trips += 1
        # The second of a transaction is the one that commits.
        if self._trips == 2 and self.happening is not None:
            self.happening()

    @override
    def fate(self) -> Fate:
        return self._fates.pop(0) if self._fates else Fate.FINE


@pytest.fixture
async def server() -> SimulatedServer:
    clock = VirtualClock(NOON, speed=0)
    next_wake = partial(lifecycle.next_wake, rules=Rules())
    server = SimulatedServer(clock.now, next_wake=next_wake, actuator_of=own_actuator)
    await keep(_store(server), a_scope(an_event()))
    return server


def _store(server: SimulatedServer, name: str = "node1", *fates: Fate) -> SimulatedStore:
    return SimulatedStore(server, a_node_record(name), conditions=Rough(*fates))


def _count(tx: Transaction) -> int:
    """One more each time that it is committed."""
    scope = tx.load(HERE)
    raised = replace(scope, incarnation=scope.incarnation + 1)
    tx.save(Change(scope=raised), by=OPERATOR)
    return scope.incarnation


async def test_nodes_that_change_one_scope_wait_for_each_other(server: SimulatedServer) -> None:
    stores = [_store(server, f"node{n}") for n in range(4)]

    answers = await asyncio.gather(*(store.transact(_count) for store in stores))

    assert sorted(found for found, _ in answers) == [1, 2, 3, 4]


async def test_a_connection_lost_before_a_commit_is_a_rerun(server: SimulatedServer) -> None:
    runs: list[int] = []

    def counted(tx: Transaction) -> int:
        runs.append(1)
        return _count(tx)

    found, _ = await _store(server, "node1", Fate.LOST_BEFORE).transact(counted)

    assert found == 1
    assert len(runs) == 2
    assert (await load(_store(server))).incarnation == 2


async def test_a_commit_whose_answer_was_lost_is_told_once_it_is_known(
    server: SimulatedServer,
) -> None:
    told: list[object] = []
    store = _store(server, "node1", Fate.LOST_AFTER)

    await store.transact(_count, tell=told.append)

    assert len(told) == 1
    assert (await load(store)).incarnation == 2


async def test_after_a_failover_nobody_knows_what_became_of_a_commit(
    server: SimulatedServer,
) -> None:
    store = _store(server, "node1", Fate.LOST_AFTER)
    server.watch(server.fail_over)

    with pytest.raises(UnknownOutcomeError):
        await store.transact(_count)


async def test_after_a_crash_it_is_unknown_whose_the_number_of_a_transaction_is(
    server: SimulatedServer,
) -> None:
    """I14: the number of what was lost is given out again, and says that it was committed."""
    conditions = Rough()
    store = SimulatedStore(server, a_node_record(), conditions=conditions)
    other = _store(server, "node2")

    def crash() -> None:
        server.crash()
        session = server.open("node2")
        server.commit(session, server.run(session, lambda tx: tx.put_note("another", "change")))

    conditions.happening = crash
    with pytest.raises(UnknownOutcomeError):
        await store.transact(_count)

    assert (await load(other)).incarnation == 1


async def test_a_number_that_another_transaction_has_now_is_asked_about_until_that_one_ends(
    server: SimulatedServer,
) -> None:
    """I14."""
    conditions = Rough()
    store = SimulatedStore(server, a_node_record(), conditions=conditions)

    def crash() -> None:
        server.crash()
        session = server.open("node2")
        ran = server.run(session, lambda tx: tx.put_note("another", "change"))
        asyncio.get_running_loop().call_later(0.3, server.commit, session, ran)

    conditions.happening = crash
    with pytest.raises(UnknownOutcomeError):
        await store.transact(_count)


async def test_what_a_crash_has_undone_is_run_again(server: SimulatedServer) -> None:
    conditions = Rough()
    store = SimulatedStore(server, a_node_record(), conditions=conditions)
    conditions.happening = server.crash

    found, _ = await store.transact(_count)

    assert found == 1
    assert (await load(_store(server))).incarnation == 2


async def test_a_server_that_stops_undoes_what_is_not_committed(server: SimulatedServer) -> None:
    conditions = Rough()
    store = SimulatedStore(server, a_node_record(), conditions=conditions)

    def start() -> None:
        server.is_up = True

    def stop() -> None:
        server.is_up = False
        server.end_sessions()
        asyncio.get_running_loop().call_soon(start)

    conditions.happening = stop
    found, _ = await store.transact(_count)

    assert found == 1
    assert (await load(_store(server))).incarnation == 2


@pytest.mark.parametrize("fate", [Fate.LOST_BEFORE, Fate.LOST_AFTER])
async def test_nobody_knows_what_became_of_a_commit_while_the_store_is_gone(
    server: SimulatedServer, fate: Fate
) -> None:
    """I14."""
    conditions = Rough(fate)
    store = SimulatedStore(server, a_node_record(), conditions=conditions, settling=0.1)

    def stop() -> None:
        server.is_up = False

    server.watch(stop)
    conditions.happening = stop if fate is Fate.LOST_BEFORE else None

    with pytest.raises(UnknownOutcomeError):
        await store.transact(_count)
    server.is_up = True

    incarnation = 1 if fate is Fate.LOST_BEFORE else 2
    assert (await load(_store(server))).incarnation == incarnation


async def test_a_standby_that_was_behind_loses_commits_and_incarnations_rise_all_the_same(
    server: SimulatedServer,
) -> None:
    """I7, F5."""
    store = _store(server)
    server.leave_standby_behind()
    await store.transact(_count)
    shown = (await load(store)).incarnation

    server.fail_over()

    left = await load(_store(server, "node2"))
    assert left.incarnation > shown
    assert left.events == a_scope(an_event()).events


async def test_a_node_is_told_what_others_commit_and_reads_anew_after_a_failover(
    server: SimulatedServer,
) -> None:
    """I25."""
    news: list[News] = []
    readings: list[int] = []

    async def read_anew() -> None:
        readings.append(1)

    watching = _store(server, "node2")
    async with watching.follow(hear=news.append, read_anew=read_anew) as following:
        following.go()
        await _store(server).transact(_count)
        await following.caught_up()
        seen = [page.document.incarnation for each in news for page in each.pages]
        server.fail_over()
        server.tell()
        for _ in range(20):
            await asyncio.sleep(0)

    assert seen == [2]
    assert readings == [1]


async def test_a_node_reads_anew_after_a_crash_and_incarnations_stay(
    server: SimulatedServer,
) -> None:
    """I25: what has a number that the last look has seen may be something else."""
    readings: list[int] = []

    async def read_anew() -> None:
        readings.append((await load(_store(server))).incarnation)

    watching = _store(server, "node2")
    async with watching.follow(hear=lambda _: None, read_anew=read_anew) as following:
        following.go()
        await _store(server).transact(_count)
        await following.caught_up()
        server.crash()
        server.tell()
        for _ in range(20):
            await asyncio.sleep(0)

    assert readings == [2]


async def test_what_could_not_be_read_anew_is_read_anew_again(server: SimulatedServer) -> None:
    """I25."""
    readings: list[int] = []

    async def read_anew() -> None:
        readings.append(1)
        if len(readings) == 1:
            raise StoreUnavailableError("it has gone again")

    async with _store(server, "node2").follow(hear=lambda _: None, read_anew=read_anew) as node:
        node.go()
        await node.caught_up()
        server.crash()
        server.tell()
        await node.caught_up()
        is_told = node.is_up_to_date

    assert readings == [1, 1]
    assert is_told


async def test_a_dead_node_commits_nothing_and_holds_nothing(server: SimulatedServer) -> None:
    """I23."""
    conditions = Rough()
    store = SimulatedStore(server, a_node_record(), conditions=conditions)
    conditions.happening = store.die

    with pytest.raises(StoreUnavailableError):
        await store.transact(_count)
    found, _ = await _store(server, "node2").transact(_count)

    assert found == 1


async def test_a_lease_that_is_not_renewed_is_taken_over(server: SimulatedServer) -> None:
    clock = VirtualClock(NOON, speed=0)
    server.now = clock.now
    one, other = _store(server, "node1"), _store(server, "node2")
    async with one.lease("fleet") as held:
        await clock.step(timedelta(seconds=16))
        async with other.lease("fleet") as taken:
            await other.transact(taken.check)
            with pytest.raises(StoreUnavailableError):
                await one.transact(held.check)
