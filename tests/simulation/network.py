"""Between clients and nodes: requests take time, get lost, and arrive twice."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final, TypeVar

from forewarned.service.errors import StoreUnavailableError
from tests.simulation.node import EXPECTED, GoneError, SimulatedNode
from tests.simulation.processes import disown
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
        copied: Callable[[], object] | None = None,
    ) -> T:
        """Raises NoAnswerError, and what the node raises but for what means 503.

        `copied` is called where a copy of the request is on its way too; None where none ever is.
        """
        await self._weather.trip()
        if self._weather.rarely(0.02):
            if copied is not None and self._weather.happens(0.5):
                self._send_late(node, answer)
            await asyncio.sleep(_PATIENCE)
            raise NoAnswerError("the request was lost, or is late")
        if copied is not None and self._weather.rarely(0.05):
            copied()
            self._send_late(node, answer)
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await node.serve(answer)
        except (GoneError, TimeoutError, StoreUnavailableError) as error:
            raise NoAnswerError(str(error)) from error
        await self._weather.trip()
        if self._weather.rarely(0.02):
            raise NoAnswerError("the answer was lost")
        return found

    def _send_late(
        self, node: SimulatedNode, answer: Callable[[], Coroutine[Any, Any, object]]
    ) -> None:
        """The request comes late, whatever becomes of who sent it, and nobody hears the answer."""
        context = copy_context()
        context.run(disown)
        asyncio.get_running_loop().create_task(self._arrive_late(node, answer), context=context)

    async def _arrive_late(
        self, node: SimulatedNode, answer: Callable[[], Coroutine[Any, Any, object]]
    ) -> None:
        await asyncio.sleep(self._weather.chance.uniform(0, 60))
        with suppress(*EXPECTED):
            await node.serve(answer)
