"""Plays a scenario: its steps in order, with patience for the handler, until all is known.

Invariant: however a scenario ends, its handler has been killed by then.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from forewarned.core.ids import EventId
from forewarned.scenarios import steps
from forewarned.scenarios.expectations import judge
from forewarned.scenarios.judgement.wording import exit_words
from forewarned.scenarios.model import ProbeFails, ProbeHolds, Scenario
from forewarned.scenarios.observations import START, HandlerStarted, StepBegan, StepEnded
from forewarned.scenarios.ports import Endpoint, Handler, HandlerError, Stage, StageError
from forewarned.scenarios.report import Finding, Report, Standing
from forewarned.scenarios.scenario_observer import Hear, Observer
from forewarned.scenarios.values import times

FIRST_ASK: Final = timedelta(seconds=30)
"""How long a handler may take from its start to its first request."""
_LOOK_EVERY: Final = 0.1
"""Seconds between two looks at a probe, and at least between two at the findings."""


async def play(
    scenario: Scenario,
    stage: Stage,
    handler: Handler,
    tell: Hear = lambda _: None,
    *,
    folder: Path,
    patience: float = 1.0,
) -> Report:
    """Returns once all expectations are decided and the handler is gone. Raises StageError.

    `folder` is empty and the handler's. `tell` hears of each observation at once. `patience`
    multiplies how long the handler may take, for slow machines.
    """
    observer = Observer(scenario, lambda: stage.now, tell, folder)
    await stage.set_up(scenario, observer.note)
    player = _Player(scenario, stage, handler, observer, folder=folder, patience=patience)
    try:
        await player.play()
    finally:
        observer.ends_handler = True
        await handler.kill()
    return Report(
        scenario=scenario,
        findings=player.findings(is_over=True),
        observations=tuple(observer.observations),
        took=observer.now(),
    )


class _StepError(Exception):
    """A step can't be played, or a wait timed out."""


class _Player:
    def __init__(
        self,
        scenario: Scenario,
        stage: Stage,
        handler: Handler,
        observer: Observer,
        *,
        folder: Path,
        patience: float,
    ) -> None:
        self._scenario = scenario
        self._stage = stage
        self._handler = handler
        self._observer = observer
        self._folder = folder
        self._patience = patience
        self._events: dict[str, tuple[EventId, ...]] = {}

    async def play(self) -> None:
        looking = asyncio.create_task(self._look_again_and_again())
        try:
            if await self._begin() and await self._play_steps():
                await self._until_known()
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            await self._look()
            await self._observer.finish()

    def findings(self, *, is_over: bool = False) -> tuple[Finding, ...]:
        return judge(
            self._scenario,
            self._observer.observations,
            now=self._observer.now(),
            patience=self._patience,
            is_over=is_over,
        )

    async def _until_known(self) -> None:
        """Until only what can't be known before the end is open."""
        while True:
            if self._observer.is_flooded or self._handler.exit_code is not None:
                # Nothing more can be seen of it.
                return
            findings = [each for each in self.findings() if each.standing is Standing.OPEN]
            deadlines = [each.decided_by for each in findings if each.decided_by is not None]
            if not deadlines:
                return
            await self._observer.more(min(deadlines) - self._observer.now())
            # A handler that asks all the time must not have us judge all the time.
            left = min(deadlines) - self._observer.now()
            await asyncio.sleep(min(_LOOK_EVERY, max(left.total_seconds(), 0)))

    # --- probes ---

    async def _look_again_and_again(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(_LOOK_EVERY)

    async def _look(self) -> None:
        for each in self._scenario.expectations:
            if isinstance(each, ProbeHolds | ProbeFails):
                await self._observer.look(each.probe)

    # --- steps ---

    async def _begin(self) -> bool:
        """Returns whether the scenario goes on; so do the next two."""

        async def start() -> tuple[EventId, ...]:
            await self._start_handler()
            await self._wait_asked(1, FIRST_ASK)
            return ()

        return not self._scenario.start_handler or await self._noted(START, start)

    async def _play_steps(self) -> bool:
        for index, step in enumerate(self._scenario.steps):
            if all(each.standing is not Standing.OPEN for each in self.findings()):
                return False
            if not await self._noted(index, partial(self._carry_out, step)):
                return False
        return True

    async def _noted(
        self, index: int, carry_out: Callable[[], Awaitable[tuple[EventId, ...]]]
    ) -> bool:
        self._observer.note(StepBegan(index=index))
        made: tuple[EventId, ...] = ()
        failure = ""
        try:
            made = await carry_out()
        except (_StepError, StageError) as error:
            failure = str(error)
        if index != START and (name := self._scenario.steps[index].name) is not None:
            self._events[name] = made
        self._observer.look_afresh()
        self._observer.note(StepEnded(index=index, events=made, failure=failure))
        return not failure

    async def _carry_out(self, step: steps.AnyStep) -> tuple[EventId, ...]:
        match step:
            case steps.StartHandler():
                await self._start_handler()
            case steps.StopHandler():
                self._observer.ends_handler = True
                await self._handler.stop(step.patience * self._patience)
            case steps.KillHandler():
                self._observer.ends_handler = True
                await self._handler.kill()
            case steps.WaitAsked():
                await self._wait_asked(step.times, step.within)
            case steps.WaitApproved():
                await self._wait_approved(step)
            case steps.WaitExited():
                await self._wait_exited(step)
            case steps.Pause():
                await asyncio.sleep(step.span.total_seconds())
            case _:
                return await self._stage.carry_out(step, self._events)
        return ()

    async def _start_handler(self) -> None:
        url = self._stage.endpoint
        environment = {
            name: value.replace("{endpoint}", url)
            for name, value in self._scenario.environment.items()
        }
        at = Endpoint(
            url=url, vm=self._scenario.handler_vm, folder=self._folder, environment=environment
        )
        self._observer.ends_handler = False
        self._observer.note(HandlerStarted())
        try:
            await self._handler.start(at, self._observer.note)
        except HandlerError as error:
            raise _StepError(str(error)) from error

    # --- waiting ---

    async def _wait_asked(self, number: int, within: timedelta) -> None:
        observer, before = self._observer, self._observer.reads
        await self._wait(lambda: observer.reads >= before + number, within)
        if observer.reads < before + number:
            often = times(observer.reads - before)
            raise _StepError(f"it read its document {often}; {self._account()}")

    async def _wait_approved(self, step: steps.WaitApproved) -> None:
        wanted = set(self._events.get(step.event, ()))
        await self._wait(lambda: wanted <= self._observer.granted, step.within)
        if not wanted <= self._observer.granted:
            raise _StepError(f"it did not approve; {self._account()}")

    async def _wait_exited(self, step: steps.WaitExited) -> None:
        await self._wait(lambda: False, step.within)
        if self._handler.exit_code is None:
            raise _StepError("it is still running")

    async def _wait(self, is_so: Callable[[], bool], within: timedelta) -> None:
        """Until it is so, or has taken too long, or can't be so any more."""
        deadline = self._observer.now() + within * self._patience
        while not is_so() and self._observer.now() < deadline:
            if self._observer.is_flooded:
                raise _StepError("it sends or prints too much")
            if self._handler.exit_code is not None:
                return
            await self._observer.more(deadline - self._observer.now())

    def _account(self) -> str:
        code = self._handler.exit_code
        ended = "" if code is None else f"{exit_words(code)}; "
        return f"{ended}{self._observer.last_request()}"
