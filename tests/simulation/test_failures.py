"""What fails without a name is found, whether or not anybody waits for it."""

import asyncio

import pytest

from forewarned.service.errors import StoreUnavailableError
from tests.simulation.loop import SimulatedLoop
from tests.simulation.processes import make_task
from tests.simulation.world import World


@pytest.mark.parametrize("error", [KeyError("a defect"), StoreUnavailableError("503")])
def test_a_failure_that_nobody_hears_of_is_a_violation_unless_it_has_a_name(
    error: Exception,
) -> None:
    loop = SimulatedLoop()
    loop.set_task_factory(make_task)  # type: ignore[arg-type]  # its type has no context yet
    asyncio.set_event_loop(loop)
    try:
        world = World(1, loop, kept=None)
        loop.run_until_complete(_ask_and_hang_up(world, error))
    finally:
        asyncio.set_event_loop(None)
        loop.close()

    assert (world.violation is not None) == isinstance(error, KeyError)


async def _ask_and_hang_up(world: World, error: Exception) -> None:
    async def answer() -> None:
        await asyncio.sleep(2)
        raise error

    node = world.nodes[0]
    node.start()
    await asyncio.sleep(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await node.serve(answer)
    await asyncio.sleep(5)
    node.kill()
