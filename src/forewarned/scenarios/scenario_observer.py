"""Notes what is seen while a scenario is played, and waits for more of it.

Invariant: a wait is woken by what is seen, and never polls.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from forewarned.core.ids import EventId
from forewarned.scenarios.judgement.wording import request_words, span
from forewarned.scenarios.model import ApprovedAfterProbe, Probe, Scenario, What
from forewarned.scenarios.observations import (
    Fact,
    HandlerExited,
    HandlerFlooded,
    Observation,
    Probed,
    Request,
    StepEnded,
)
from forewarned.scenarios.probes import file_holds, holds

Hear = Callable[[Observation], None]

MOST_OBSERVATIONS: Final = 20_000
"""A handler that asks or prints more often floods. What it does then is not noted any more."""


class Observer:
    def __init__(
        self, scenario: Scenario, clock: Callable[[], datetime], tell: Hear, folder: Path
    ) -> None:
        """`clock` is the service's. `tell` hears of each observation at once."""
        self._vm = scenario.handler_vm.casefold()
        self._clock = clock
        self._tell = tell
        self._folder = folder
        self._on_approval = {
            each.probe for each in scenario.expectations if isinstance(each, ApprovedAfterProbe)
        }
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        self._noted = asyncio.Event()
        self._commands: set[asyncio.Task[None]] = set()
        self._probed: dict[Probe, bool] = {}
        self.observations: list[Observation] = []
        self.reads = 0
        """How often the handler has asked for its document."""
        self.granted: set[EventId] = set()
        """The events that the handler has approved."""
        self.is_flooded = False
        self.ends_handler = False
        """Whether the player is ending the handler, so that its end is no news."""

    def now(self) -> timedelta:
        """How long it has been watching, in real time."""
        return timedelta(seconds=self._loop.time() - self._began_at)

    def note(self, fact: Fact) -> None:
        if self.is_flooded and not isinstance(fact, StepEnded):
            return
        if isinstance(fact, HandlerExited):
            fact = HandlerExited(code=fact.code, was_asked=self.ends_handler)
        self._keep(fact)
        if len(self.observations) >= MOST_OBSERVATIONS and not self.is_flooded:
            self.is_flooded = True
            self._keep(HandlerFlooded(most=MOST_OBSERVATIONS))
        if isinstance(fact, Request) and (fact.vm is None or fact.vm.casefold() == self._vm):
            self._note_request(fact)
        self._noted.set()

    def _keep(self, fact: Fact) -> None:
        observation = Observation(at=self.now(), clock_at=self._clock(), fact=fact)
        self.observations.append(observation)
        self._tell(observation)

    def _note_request(self, request: Request) -> None:
        self.reads += request.what is What.EVENTS
        if request.is_answered:
            self.granted.update(request.approves)
        if not request.approves:
            return
        for probe in self._on_approval:
            # The handler has no answer yet, so a file that is there now was there before.
            found = file_holds(probe, self._folder)
            if found is not None:
                self.note(Probed(probe=probe, holds=found, approval=request.approves))
            else:
                command = asyncio.create_task(self._probe_command(probe, request.approves))
                self._commands.add(command)
                command.add_done_callback(self._commands.discard)

    async def _probe_command(self, probe: Probe, approval: tuple[EventId, ...]) -> None:
        found = await holds(probe, self._folder)
        self.note(Probed(probe=probe, holds=found, approval=approval))

    async def look(self, probe: Probe) -> None:
        """Note whether the probe holds, unless that is known already."""
        found = await holds(probe, self._folder)
        if self._probed.get(probe) is not found:
            self._probed[probe] = found
            self.note(Probed(probe=probe, holds=found))

    def look_afresh(self) -> None:
        """Note every probe again: a new step has begun, and what holds from then on counts."""
        self._probed.clear()

    async def finish(self) -> None:
        """Wait for the probes that are being looked at."""
        while self._commands:
            await asyncio.wait(self._commands)

    # --- waiting ---

    async def more(self, limit: timedelta) -> None:
        """Return when more has been noted since this was last called, or after a while."""
        try:
            async with asyncio.timeout(max(limit.total_seconds(), 0)):
                await self._noted.wait()
        except TimeoutError:
            return
        self._noted.clear()

    def last_request(self) -> str:
        for each in reversed(self.observations):
            if isinstance(each.fact, Request):
                ago = timedelta(seconds=round((self.now() - each.at).total_seconds()))
                return f"its last request was {span(ago)} ago: {request_words(each.fact)}"
        return "it has sent no request so far"
