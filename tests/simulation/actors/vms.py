"""VMs that run a simple program: it polls, and approves some of what it reads."""

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from forewarned.core.errors import RefusalError, UnknownEventError
from forewarned.core.ids import EventId
from forewarned.metadata.options import Balancing
from forewarned.service.listings import HistoryFilter
from tests.builders import event_id
from tests.simulation import laws
from tests.simulation.listener import Connection, UnknownVmError
from tests.simulation.moments import Moment
from tests.simulation.network import NoAnswerError
from tests.simulation.node import SimulatedNode
from tests.simulation.processes import Process
from tests.simulation.world import World
from tests.stateful.fleet import VMS
from tests.stateful.oracle import Shown

NEVER_MADE: Final = event_id(0xDEAD)
_HOUR: Final = 3600.0


class SimulatedVm:
    """Named for life: a VM that is made anew under its name is the same one here."""

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.scope_id = VMS[name].scope
        self.world = world
        self.version = world.chance.choice(laws.versions_read())
        self.node = world.chance.choice(world.nodes)
        self.nudged = asyncio.Event()
        """Something has changed: a VM that polls each second would soon see it."""
        self.is_up = True
        self.process = Process(name)
        self.boots = 1
        self._decided: set[tuple[str, str]] = set()
        """Events, each with the status in which it was seen."""
        self._failures = 0
        self.read_at: datetime | None = None
        """When it was last given a document, since it was switched on."""
        self._connection: tuple[SimulatedNode, Connection] | None = None
        # One of a scope reads often enough to keep it active, and is late now and then.
        is_first = next(each for each in VMS if VMS[each].scope == self.scope_id) == name
        self._calm = (26 if is_first else 200) * _HOUR

    def start(self) -> None:
        self.process.spawn(self.world.watched(self.run))

    def restart(self, after: float) -> None:
        """The guest is gone at once, and comes back later."""
        self.process.kill()
        self.read_at = None
        self.boots += 1
        self._connection = None
        self.process = Process(self.name)
        self.is_up = True
        self.process.spawn(self.world.watched(partial(self._boot, after)))

    def crash(self) -> None:
        """The guest starts again by itself. The platform knows nothing of that."""
        if self.is_up:
            self.world.story.tell(self.name, "crashes")
            self.restart(self.world.chance.uniform(5, 90))

    def halt(self) -> None:
        self._connection = None
        self.process.kill()
        self.is_up = False

    async def _boot(self, after: float) -> None:
        await asyncio.sleep(after)
        self.nudged.set()
        await self.run()

    async def run(self) -> None:
        """What the VM does all day."""
        chance = self.world.chance
        while True:
            await self.until_next_poll()
            events = await self.read()
            for event in events or ():
                seen = (event["EventId"], event["EventStatus"])
                if seen in self._decided:
                    continue
                self._decided.add(seen)
                # Some are late: what has started is approved as well, and that changes nothing.
                if chance.random() < (0.6 if event["EventStatus"] == "Scheduled" else 0.2):
                    approve = partial(self._approve_later, event["EventId"])
                    self.process.spawn(self.world.watched(approve))

    async def until_next_poll(self) -> None:
        """Within seconds of a change, and now and then."""
        chance = self.world.chance
        try:
            async with asyncio.timeout(chance.uniform(0.4, 0.9) * self._calm):
                await self.nudged.wait()
        except TimeoutError:
            return
        self.nudged.clear()
        await asyncio.sleep(chance.choice([0.05, 1, 5, 30]) * chance.random())

    async def read(self) -> list[dict[str, Any]] | None:
        """The events; None without a document."""
        shown = await self.poll()
        if shown is None:
            self.try_again_later()
            return None
        self._failures = 0
        found: list[dict[str, Any]] = json.loads(shown.body)["Events"]
        return found

    def try_again_later(self) -> None:
        """Soon at first, and less and less often where no node knows the VM."""
        self._failures = min(self._failures + 1, 12)
        delay = self.world.chance.uniform(1, 3) * 2 ** max(self._failures - 3, 0)
        self.world.later(delay, self.nudged.set)

    async def poll(self) -> Shown | None:
        """Some ask again at once, and their balancer sends them to another node."""
        shown = await self._poll()
        is_sent_on = self.world.weather.balancing is Balancing.ANY
        if shown is not None and is_sent_on and self.world.weather.rarely(0.3):
            self.node = self.world.network.any_node()
            shown = await self._poll() or shown
        return shown

    async def _poll(self) -> Shown | None:
        world = self.world
        may_move = world.weather.balancing is Balancing.ANY and world.weather.rarely(0.2)
        if may_move or not self.node.is_serving:
            self.node = world.network.any_node()
        node, connection = self.node, self._connected()
        is_known = connection.served > 0
        try:
            shown = await world.network.ask(node, lambda: node.poll(connection, self.version))
        except NoAnswerError:
            self._connection = None
            return None
        if is_known and connection.was_cut_off and not world.is_missing(self.name):
            laws.i24_who_was_served_is_still(self.name, shown)
        if shown is not None:
            world.polls += 1
            self.read_at = world.true.now()
            laws.i7_no_vm_sees_the_incarnation_fall(world.seen, self.name, shown)
            laws.i8_i10_what_a_vm_reads_was_committed(
                world.ledger, self.scope_id, self.version, shown
            )
        return shown

    def _connected(self) -> Connection:
        """To the VM's node: the one that it has, or a new one."""
        now = self.world.true.monotonic_ns()
        held = self._connection
        if held is None or held[0] is not self.node or not held[1].is_open(now):
            held = self._connection = (self.node, self.node.connect(self.name))
        return held[1]

    async def approve(self, *event_ids: EventId) -> None:
        """Raises NoAnswerError, RefusalError."""
        world, node, address = self.world, self.node, self.world.new_address()
        connection = node.connect(self.name, address=address)
        world.moments.has_come(Moment.APPROVAL)
        try:
            await world.network.ask(
                node,
                lambda: node.approve(connection, event_ids),
                copied=lambda: world.story.tell(self.name, "its approval is sent twice"),
            )
        except UnknownVmError as error:
            laws.i12_who_approves_is_known(self.name, is_missing=world.is_missing(self.name))
            raise NoAnswerError(str(error)) from error
        except UnknownEventError:
            # After a failover that has lost events it may be right.
            strangers = laws.unknown(event_ids, world.ledger.oracle, self.scope_id)
            is_foretold = bool(strangers) or world.is_missing(self.name)
            assert is_foretold, f"I12: {self.name} approved {event_ids}, and was refused"
            self._check_request(event_ids, address, is_refused=True)
            raise
        strangers = laws.unknown(event_ids, world.ledger.oracle, self.scope_id)
        if not world.has_lost_lately():
            assert not strangers, f"I12, I15: {strangers} were approved by {self.name}"
        world.acknowledge_approvals(each for each in event_ids if each not in strangers)
        self._check_request(event_ids, address, is_refused=False)

    def _check_request(
        self, event_ids: Sequence[EventId], address: str, *, is_refused: bool
    ) -> None:
        """Of several events. After a failover a copy of the request may have found other events."""
        world = self.world
        if len(event_ids) > 1 and not world.has_lost_lately():
            snapshot = world.server.snapshot()
            wanted = [HistoryFilter(event_id=each, action="approved") for each in event_ids]
            rows = [row for each in wanted for row in snapshot.history(each)]
            # The address is this request's own.
            approved = {row.event_id for row in rows if row.address == address and row.event_id}
            laws.i15_a_request_is_granted_as_one(world.ledger, approved, is_refused=is_refused)

    def _another_event(self) -> EventId | None:
        """One of the VM's own that is waiting or under way, or one of any scope, perhaps over."""
        own = [
            life.event.id
            for life in self.world.ledger.oracle.of_scope(self.scope_id)
            if not life.is_over
        ]
        if own and self.world.chance.random() < 0.7:
            return self.world.chance.choice(own)
        return self.world.any_event_id()

    async def _approve_later(self, found: str) -> None:
        chance = self.world.chance
        await asyncio.sleep(chance.choice([0, 1, 60, 600]) * chance.random())
        ids = [EventId(found)]
        if chance.random() < 0.2:
            another = self._another_event() or NEVER_MADE
            ids = chance.choice([[*ids, another], [another]])
        for _ in range(3):
            try:
                await self.approve(*ids)
            except NoAnswerError:
                await asyncio.sleep(chance.uniform(0.5, 3))
            except RefusalError:
                return
            else:
                if chance.random() < 0.8:
                    return
