"""What breaks, and heals: nodes, connections, clocks, and the store itself."""

import asyncio
from datetime import timedelta
from typing import Final

from tests.simulation.world import World

_FREED: Final = 2.5
"""Seconds until the server ends the sessions of a node that it does not hear of."""


class Chaos:
    def __init__(self, world: World) -> None:
        self._world = world

    async def strike(self) -> None:
        """Break one thing, and mend it after a while."""
        chance = self._world.chance
        what = chance.choices(
            [
                self._kill_node,
                self._stop_node,
                self._cut_off_node,
                self._store_down,
                self._crash,
                self._fail_over,
                self._fail_over_with_loss,
                self._node_clock_wrong,
                self._store_clock_wrong,
                self._sessions_ended,
            ],
            weights=[4, 1, 3, 1.5, 1.5, 1.5, 1.5, 1, 2, 2],
        )[0]
        await what()

    async def _kill_node(self) -> None:
        world = self._world
        node = world.chance.choice(world.nodes)
        world.story.tell(node.name, "is killed")
        node.kill()
        world.note_health()
        await asyncio.sleep(world.chance.choice([0.5, 5, 60, 600]) * world.chance.random())
        node.start()

    async def _stop_node(self) -> None:
        world = self._world
        node = world.chance.choice(world.nodes)
        if not node.is_serving:
            return
        world.story.tell(node.name, "is told to stop")
        await node.stop()
        world.note_health()
        await asyncio.sleep(world.chance.uniform(0.5, 60))
        node.start()

    async def _cut_off_node(self) -> None:
        world = self._world
        node = world.chance.choice(world.nodes)
        world.note_looks()
        world.story.tell(node.name, "is cut off from the store")
        node.conditions.is_cut_off = True
        world.note_health()
        span = world.chance.choice([1, 10, 120, 2400]) * world.chance.random()
        world.later(_FREED, lambda: world.server.end_sessions(node.name))
        await asyncio.sleep(span)
        node.conditions.is_cut_off = False
        world.story.tell(node.name, "reaches the store again")
        world.note_health()

    async def _store_down(self) -> None:
        self._world.note_looks()
        await self._down(self._world.chance.choice([1, 10, 60]) * self._world.chance.random())

    async def _crash(self) -> None:
        """It recovers, with all that was committed."""
        world = self._world
        world.note_looks()
        world.story.tell("store", "crashes")
        world.server.crash()
        await self._down(world.chance.uniform(0.1, 3))

    async def _fail_over(self) -> None:
        world = self._world
        world.note_looks()
        world.begin_outage()
        world.story.tell("store", "the primary fails")
        # Also by another failure.
        if world.server.is_standby_behind:
            world.lost_at = world.true.now()
        world.server.fail_over()
        await self._down(world.chance.uniform(0.3, 3))

    async def _fail_over_with_loss(self) -> None:
        world = self._world
        world.server.leave_standby_behind()
        world.story.tell("store", "the standby no longer follows")
        await asyncio.sleep(world.chance.choice([0.1, 2, 30]) * world.chance.random())
        await self._fail_over()

    async def _down(self, seconds: float) -> None:
        world = self._world
        world.story.tell("store", "is down")
        world.server.is_up = False
        world.server.end_sessions()
        world.note_health()
        await asyncio.sleep(seconds)
        world.server.is_up = True
        world.server.tell()
        world.story.tell("store", "is up")
        world.note_health()

    async def _node_clock_wrong(self) -> None:
        world = self._world
        node = world.chance.choice(world.nodes)
        error = timedelta(seconds=world.chance.choice([-262, -20, -1, 1, 262]))
        world.story.tell(node.name, f"its clock is off by {error.total_seconds():.0f} s")
        node.conditions.set_wall(error)
        world.note_health()
        await asyncio.sleep(world.chance.uniform(10, 600))
        node.conditions.set_wall(timedelta(0))
        world.story.tell(node.name, "its clock is right again")
        world.note_health()

    async def _store_clock_wrong(self) -> None:
        """Ahead: behind would be the same as all nodes being ahead."""
        world = self._world
        error = timedelta(seconds=world.chance.choice([1, 3, 20, 262]))
        world.story.tell("store", f"its clock is {error.total_seconds():.0f} s ahead")
        # Judged before it jumps: no node could start in no time what the jump makes due.
        world.begin_outage()
        world.store_error = error
        world.server.tell()
        world.note_health()
        await asyncio.sleep(world.chance.uniform(1, 60))
        world.store_error = timedelta(0)
        world.server.tell()
        world.story.tell("store", "its clock is right again")
        world.note_health()

    async def _sessions_ended(self) -> None:
        self._world.story.tell("store", "ends all sessions")
        self._world.server.end_sessions()
