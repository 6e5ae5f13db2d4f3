"""Operators: schedule, cancel, plan maintenance, resize the fleet, and settle what is stuck."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

from forewarned.core.errors import RefusalError
from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import EventSource, EventType
from forewarned.core.tasks import Task, TaskState
from forewarned.core.transitions import Retried, Skipped
from forewarned.service.events.schedule import EventOrder, WorkOrder
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.listings import TaskFilter
from forewarned.service.use_cases import UseCases
from tests.builders import HOUR, MINUTE, OPERATOR
from tests.simulation import promises
from tests.simulation.moments import Moment
from tests.simulation.network import NoAnswerError
from tests.simulation.promises import IsKept
from tests.simulation.world import World
from tests.stateful.fleet import FULL, SCOPES, SPOT_SCOPES, VMS, plan

T = TypeVar("T")
Order = Callable[[UseCases], Coroutine[Any, Any, T]]

_WORK: Final = (EventType.REBOOT, EventType.FREEZE, EventType.REDEPLOY)


class Operators:
    def __init__(self, world: World) -> None:
        self._world = world
        self._hosts = sorted({vm.host for vm in VMS.values()})
        self._is_whole = True

    async def found(self) -> None:
        """The fleet, at the beginning."""
        while True:
            if await self._apply("apply the fleet", plan()):
                return
            await asyncio.sleep(1)

    async def act(self) -> None:
        """One thing that operators do."""
        chance = self._world.chance
        what = chance.choices(
            [
                self._schedule,
                self._schedule_terminates,
                self._maintain_host,
                self._maintain_set,
                self._fail_host,
                self._cancel,
                self._approve,
                self._complete,
                self._resize,
                self._poke,
            ],
            weights=[8, 2, 3, 2, 1, 3, 2, 1, 1.5, 2],
        )[0]
        await what()

    async def order(
        self,
        words: str,
        order: Order[T],
        promised: Callable[[T], IsKept],
        refused: Callable[[], None] = lambda: None,
        copied: Callable[[], None] = lambda: None,
    ) -> bool:
        """Whether it was granted. What was `promised` by the answer must be true from then on.

        `refused` is called where it is known that nothing was done, and `copied` where it is also
        done a second time, later, unless that is refused.
        """
        world = self._world
        node = world.network.any_node()

        def twice() -> None:
            world.story.tell("operator", f"{words} at {node.name}: is sent twice")
            copied()

        try:
            answer = await world.network.ask(node, lambda: order(node.use_cases), copied=twice)
        except NoAnswerError as error:
            world.story.tell("operator", f"{words} at {node.name}: no answer ({error})")
            return False
        except RefusalError as error:
            world.story.tell("operator", f"{words} at {node.name}: refused ({error})")
            refused()
            return False
        world.story.tell("operator", f"{words} at {node.name}: granted")
        world.acknowledge(f"{words} (at {world.true.now()})", promised(answer))
        return True

    async def _apply(self, words: str, fleet: FleetPlan, *, prune: bool = False) -> bool:
        since = len(self._world.ledger.oracle.facts)
        return await self.order(
            words,
            lambda app: app.fleet.apply(fleet, by=OPERATOR, prune=prune),
            partial(promises.applied, since=since),
        )

    async def settle(self) -> None:
        """Retry or skip what is stuck, and make the fleet whole again."""
        world = self._world
        wanted = TaskFilter(state=TaskState.STUCK, limit=100)
        for task in world.server.snapshot().tasks(wanted):
            if world.chance.random() < 0.5:
                # Counted before: an answer may be lost, and the order be carried out all the same.
                world.note_order(task.key)
                await self.order(
                    f"retry {task.vm}",
                    partial(_retry, task=task),
                    partial(promises.noted, fact=Retried),
                    refused=partial(world.take_back_order, task.key),
                    copied=partial(world.note_order, task.key),
                )
            else:
                await self.order(
                    f"skip {task.vm}",
                    partial(_skip, task=task),
                    partial(promises.noted, fact=Skipped),
                )
        if not self._is_whole and world.chance.random() < 0.7:
            self._is_whole = await self._apply("apply the fleet", plan())

    # --- what they do ------------------------------------------------------------------------

    async def _schedule(self) -> None:
        chance = self._world.chance
        name = chance.choice(sorted(VMS))
        last = EventType.PREEMPT if VMS[name].scope in SPOT_SCOPES else EventType.TERMINATE
        type_ = chance.choices([*_WORK, last], weights=[4, 3, 3, 1])[0]
        order = EventOrder(
            type=type_,
            resources=(ResourceName(name),),
            source=chance.choice(list(EventSource)),
            notice=chance.choice([None, None, 15 * MINUTE, HOUR, MINUTE]),
            duration=chance.choice([None, timedelta(seconds=9)]),
        )
        await self.order(
            f"schedule {type_} of {name}",
            lambda app: app.scheduler.schedule(order, by=OPERATOR),
            partial(promises.scheduled, of=order.resources),
        )

    async def _schedule_terminates(self) -> None:
        chance = self._world.chance
        names = chance.sample(["batch_0", "batch_1", "batch_2", "batch_3"], chance.randint(1, 3))
        order = EventOrder(
            type=EventType.TERMINATE,
            resources=tuple(map(ResourceName, sorted(names))),
            source=EventSource.USER,
            notice=chance.choice([None, 8 * MINUTE, 15 * MINUTE]),
        )
        self._is_whole = False
        await self.order(
            f"schedule Terminate of {' '.join(sorted(names))}",
            lambda app: app.scheduler.schedule(order, by=OPERATOR),
            partial(promises.scheduled, of=order.resources),
        )

    async def _maintain_host(self) -> None:
        chance = self._world.chance
        host, type_ = HostName(chance.choice(self._hosts)), chance.choice(_WORK)
        await self.order(
            f"maintain host {host} ({type_})",
            lambda app: app.scheduler.maintain_host(host, WorkOrder(type=type_), by=OPERATOR),
            promises.planned,
        )

    async def _maintain_set(self) -> None:
        chance = self._world.chance
        scope_id, type_ = chance.choice(SCOPES), chance.choice(_WORK)
        await self.order(
            f"maintain set {scope_id} ({type_})",
            lambda app: app.scheduler.maintain_set(scope_id, WorkOrder(type=type_), by=OPERATOR),
            promises.planned,
        )

    async def _fail_host(self) -> None:
        host = HostName(self._world.chance.choice(self._hosts))
        is_foreseen = self._world.chance.random() < 0.5
        await self.order(
            f"{'predict' if is_foreseen else 'report'} failure of {host}",
            lambda app: (
                app.scheduler.predict_failure(host, by=OPERATOR)
                if is_foreseen
                else app.scheduler.fail_host(host, by=OPERATOR)
            ),
            promises.planned,
        )

    async def _cancel(self) -> None:
        event_id = self._world.any_event_id()
        if event_id is not None:
            await self.order(
                f"cancel {event_id[:8]}",
                lambda app: app.scheduler.cancel(event_id, reason="no need", by=OPERATOR),
                partial(promises.canceled, event_id=event_id),
            )

    async def _approve(self) -> None:
        event_id = self._world.any_event_id()
        self._world.moments.has_come(Moment.APPROVAL)
        if event_id is not None:
            await self.order(
                f"approve {event_id[:8]}",
                lambda app: app.approvals.approve_from_outside(event_id, by=OPERATOR),
                lambda _: promises.approved(event_id),
            )

    async def _complete(self) -> None:
        under_way = self._world.ledger.oracle.under_way()
        if under_way:
            life = self._world.chance.choice(under_way)
            self._world.completed_by_hand.add(life.event.id)
            await self.order(
                f"complete {life.event.id[:8]}",
                lambda app: app.actuation.complete_by_hand(life.event.id, by=OPERATOR),
                lambda record: promises.planned([record]),
            )

    async def _resize(self) -> None:
        chance = self._world.chance
        scope_id = chance.choice(SCOPES)
        sizes = {**FULL, scope_id: chance.randint(0, FULL[scope_id])}
        self._is_whole = False
        await self._apply(f"resize {scope_id} to {sizes[scope_id]}", plan(sizes), prune=True)

    async def _poke(self) -> None:
        """Two at once, at two nodes: whoever comes second must find what the first has left."""
        await asyncio.gather(self._schedule(), self._maintain_host())


async def _retry(app: UseCases, *, task: Task) -> Task:
    return await app.tasks.retry(task.event_id, task.vm, by=OPERATOR)


async def _skip(app: UseCases, *, task: Task) -> Task:
    return await app.tasks.skip(task.event_id, task.vm, by=OPERATOR)
