"""Between clients and nodes: requests take time, get lost, and arrive twice."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from forewarned.service.errors import StoreUnavailableError
from tests.simulation.node import EXPECTED, GoneError, SimulatedNode
from tests.simulation.weather import Weather

T = TypeVar("T")

_PATIENCE: Final = 12.0
"""Seconds until a client gives a request up."""


class NoAnswerError(Exception):
    """The client does not know what became of its request."""


class Network:
    def __init__(self, weather: Weather, nodes: Sequence[SimulatedNode]) -> None:
        self._weather = weather
        self.nodes = nodes

    def any_node(self) -> SimulatedNode:
        serving = [node for node in self.nodes if node.is_serving] or self.nodes
        return self._weather.chance.choice(serving)

    async def ask(
        self,
        node: SimulatedNode,
        answer: Callable[[], Coroutine[Any, Any, T]],
        *,
        may_repeat: bool = False,
    ) -> T:
        """Raises NoAnswerError, and what the node raises but for what means 503."""
        await self._weather.trip()
        if self._weather.rarely(0.02):
            await asyncio.sleep(_PATIENCE)
            raise NoAnswerError("the request was lost")
        if may_repeat and self._weather.rarely(0.05):
            asyncio.get_running_loop().create_task(self._again(node, answer))
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await node.serve(answer)
        except (GoneError, TimeoutError, StoreUnavailableError) as error:
            raise NoAnswerError(str(error)) from error
        await self._weather.trip()
        if self._weather.rarely(0.02):
            raise NoAnswerError("the answer was lost")
        return found

    async def _again(
        self, node: SimulatedNode, answer: Callable[[], Coroutine[Any, Any, object]]
    ) -> None:
        """A copy of a request, which comes late and whose answer nobody hears."""
        await asyncio.sleep(self._weather.chance.uniform(0, 60))
        with suppress(*EXPECTED):
            await node.serve(answer)
