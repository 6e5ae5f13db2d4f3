"""What all actors of one simulation share: time, chance, the store, the nodes, and what was seen."""

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Any, Final

from typing_extensions import override

from forewarned.core import lifecycle
from forewarned.core.ids import EventId
from forewarned.core.transitions import Scheduled
from forewarned.service.records import Caller, Commit
from tests.builders import event_id
from tests.simulation import laws, promises
from tests.simulation.clock import TrueTime
from tests.simulation.ledger import WorldLedger
from tests.simulation.loop import SimulatedLoop
from tests.simulation.moments import Moment, Moments
from tests.simulation.network import Network
from tests.simulation.node import RULES, SimulatedNode, Surroundings
from tests.simulation.processes import current
from tests.simulation.promises import IsKept, Promise
from tests.simulation.store.server import SimulatedServer
from tests.simulation.story import Story
from tests.simulation.weather import Weather
from tests.stateful.fleet import VMS
from tests.stateful.stack import rack1

START: Final = datetime(2026, 1, 5, 12, 0, 0, 400_000, tzinfo=UTC)
_NEVER: Final = datetime(9000, 1, 1, tzinfo=UTC)
_JUST_READ: Final = timedelta(minutes=5)
_LATELY: Final = timedelta(minutes=5)


class World:
    def __init__(self, seed: int, loop: SimulatedLoop, *, kept: int | None) -> None:
        """`kept` is how many lines of the story; None for all."""
        self.loop = loop
        self.chance = Random(seed)
        self.true = TrueTime(loop, START)
        self.weather = Weather(self.chance)
        self.moments = Moments()
        self.story = Story(self.true.now, kept=kept)
        self.violation: str | None = None
        self.is_broken = asyncio.Event()
        self.store_error = timedelta(0)
        """How far the store's clock is ahead."""
        self.lost_at: datetime | None = None
        """When commits were last lost in a failover."""
        self.seen: dict[str, int] = {}
        """The incarnation that each VM has read last."""
        self.orders: Counter[str] = Counter()
        """How often operators have had a task repeated."""
        self.completed_by_hand: set[EventId] = set()
        self.polls = 0
        self._hearing: list[Callable[[Commit], None]] = []
        self._vm_time, self._counted_at = timedelta(0), START
        self._vms = 0
        self.ledger = WorldLedger(START, self.story, violated=self.violated, heard=self._hear)
        self.server = SimulatedServer(
            lambda: self.true.now() + self.store_error,
            next_wake=partial(lifecycle.next_wake, rules=RULES),
            actuator_of=rack1,
            ledger=self.ledger,
        )
        numbers, ids = count(1), count(1)
        self._addresses = count(1)
        self.opened: list[Callable[[SimulatedNode], None]] = []
        around = Surroundings(
            server=self.server,
            true=self.true,
            weather=self.weather,
            new_event_id=lambda: event_id(next(numbers)),
            new_id=lambda: f"00000000-0000-0000-0000-{next(ids):012}",
            rank=self._rank,
            opened=self._open,
            read=self._read,
            violated=self.violated,
        )
        self.nodes = [SimulatedNode(f"node{number}", around) for number in (1, 2, 3)]
        self.network = Network(self.weather, self.nodes)
        self._is_healthy = False
        self.note_health()

    # --- what actors do ----------------------------------------------------------------------

    def violated(self, error: BaseException) -> None:
        """Only the first: what follows may be its consequence."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if self.violation is None:
            if isinstance(error, AssertionError):
                self.violation = str(error) or "".join(traceback.format_exception(error))
            else:
                self.violation = "".join(traceback.format_exception(error))
            self.is_broken.set()
            self.story.tell("LAW", self.violation.strip().splitlines()[-1])

    async def watched(self, act: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run what an actor does. Nothing there may fail unexpectedly.

        It begins here: a process may be killed before its first step.
        """
        process = current()
        try:
            await act()
        except Exception as error:  # noqa: BLE001  # a finding, whatever it is
            if process is None or not process.is_dead:
                self.violated(error)

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        self.loop.call_later(seconds, call)

    def listen(self, heard: Callable[[Commit], None]) -> None:
        self._hearing.append(heard)

    def acknowledge(self, words: str, is_kept: IsKept) -> None:
        """A client was told that this is done."""
        ledger = self.ledger
        if is_kept(ledger.oracle) or not self.has_lost_lately():
            promise = Promise(at=ledger.mark(), is_kept=is_kept)
            ledger.acknowledged[words] = promise
            laws.i14_what_was_answered_is_durable(ledger.oracle, {words: promise})

    def acknowledge_approvals(self, event_ids: Iterable[EventId]) -> None:
        for each in event_ids:
            self.acknowledge(f"approve {each}", promises.approved(each))

    def note_order(self, key: str) -> None:
        """The task may be repeated once more."""
        self.orders[key] += 1

    def take_back_order(self, key: str) -> None:
        """It was refused: the task is not to be repeated."""
        self.orders[key] -= 1

    def has_lost_lately(self) -> bool:
        """Whether a client may have been told, or may tell, of what is lost."""
        return self.lost_at is not None and self.true.now() - self.lost_at < _LATELY

    def is_missing(self, name: str) -> bool:
        """Whether there is no such VM, or may not have been a moment ago."""
        return name not in self.ledger.oracle.vms() or self.has_lost_lately()

    def any_event_id(self) -> EventId | None:
        lives = list(self.ledger.oracle.lives.values())[-12:]
        return self.chance.choice(lives).event.id if lives else None

    def new_address(self) -> str:
        """For a request that is to be told from all others in the history."""
        number = next(self._addresses)
        return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"

    def check(self) -> None:
        """Hold the stored state, and all nodes that have heard of it, to the laws."""
        ledger, oracle = self.ledger, self.ledger.oracle
        state = ledger.state(self.server.snapshot(), self.server.now())
        ledger.check(state)
        laws.i14_what_was_answered_is_durable(oracle, ledger.acknowledged)
        if self._is_healthy:
            laws.i20_nothing_is_overdue_for_long(oracle, state.now)
            laws.i28_scopes_are_on_while_somebody_reads(oracle, state)
        for node in self.nodes:
            if node.is_up_to_date:
                board = node.delivery.board
                laws.i25_a_board_that_is_up_to_date_is_the_store(board, state, node.name)

    # --- health ------------------------------------------------------------------------------

    def note_looks(self) -> None:
        """To be called before the store can no longer be reached: until now all nodes have looked."""
        for node in self.nodes:
            node.note_looks()

    def note_health(self) -> None:
        """I20 holds from when some node can reach the store, and believes its clock."""
        for node in self.nodes:
            node.note_reach()
        is_healthy = self.server.is_up and any(node.is_healthy for node in self.nodes)
        if is_healthy and not self._is_healthy:
            self.ledger.oracle.up_since = self.server.now()
        elif not is_healthy:
            self.begin_outage()
        self._is_healthy = is_healthy
        # Of reads of the last moments the store may not have been told yet.
        for reads in self.ledger.oracle.reads.values():
            if self.true.now() - reads.latest < _JUST_READ:
                reads.earliest = min(reads.earliest, reads.latest - timedelta(days=1))

    def begin_outage(self) -> None:
        if self._is_healthy:
            # Whatever is late now has no excuse.
            try:
                laws.i20_nothing_is_overdue_for_long(self.ledger.oracle, self.server.now())
            except AssertionError as broken:
                self.violated(broken)
        self._is_healthy = False
        self.ledger.oracle.up_since = _NEVER

    def _open(self, node: SimulatedNode) -> None:
        self.story.tell(node.name, "serves")
        self.note_health()
        for opened in self.opened:
            opened(node)

    def _rank(self, name: str) -> int:
        return sum(node.is_serving and node.name < name for node in self.nodes)

    # --- what is counted ---------------------------------------------------------------------

    @property
    def vm_days(self) -> float:
        self._count_vms()
        return self._vm_time / timedelta(days=1)

    def _read(self, caller: Caller) -> None:
        try:
            laws.i9_a_vm_is_taken_for_itself(VMS[caller.name].scope, caller.scope_id, caller.name)
        except AssertionError as broken:
            self.violated(broken)
        self.ledger.oracle.read(caller.scope_id, self.true.now())

    def _hear(self, commit: Commit, node: str) -> None:
        if commit.bound or commit.unbound:
            self._count_vms()
        for fact in commit.transitions:
            if isinstance(fact, Scheduled) and fact.event.not_before is not None:
                self._foresee_start(fact.event.not_before)
        try:
            most = next(each.conditions.most_early() for each in self.nodes if each.name == node)
            laws.i4_no_clock_starts_an_event_early(
                self.ledger.oracle, commit, now=self.true.now(), most=most
            )
            if self._is_healthy:
                laws.i20_nothing_is_overdue_for_long(self.ledger.oracle, self.server.now())
            for heard in self._hearing:
                heard(commit)
        except AssertionError as broken:
            self.violated(broken)

    def _foresee_start(self, not_before: datetime) -> None:
        left = (not_before - self.server.now()).total_seconds()
        moment = max(left - self.chance.uniform(-0.1, 1), 0)
        self.later(moment, lambda: self.moments.has_come(Moment.START))

    def _count_vms(self) -> None:
        now = self.true.now()
        self._vm_time += self._vms * (now - self._counted_at)
        self._vms, self._counted_at = len(self.ledger.oracle.vms()), now


class Complaints(logging.Handler):
    """What the product could only log: a failure that it did not expect."""

    def __init__(self, violated: Callable[[BaseException], None]) -> None:
        super().__init__(logging.ERROR)
        self._violated = violated

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._violated(record.exc_info[1])
