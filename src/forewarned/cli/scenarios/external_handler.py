"""A handler that the operator runs: it is seen by what it asks, and by nothing else."""

from collections.abc import Callable
from datetime import timedelta

from forewarned.scenarios.ports import Endpoint, Tell


class ExternalHandler:
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    @property
    def exit_code(self) -> int | None:
        return None

    async def start(self, at: Endpoint, tell: Tell) -> None:  # noqa: ARG002  # the operator starts it
        self._say(f"waiting for the handler of VM {at.vm} to send a request to {at.url}")
        for name, value in at.environment.items():
            self._say(f"set {name}={value} in the handler's environment")

    async def kill(self) -> None:
        """It goes on: only the operator ends it."""

    async def stop(self, patience: timedelta) -> None:
        """It goes on, too."""
