"""Observations, looked up as expectations need them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from forewarned.core.ids import EventId
from forewarned.scenarios.model import Scenario, What
from forewarned.scenarios.observations import (
    HandlerExited,
    HandlerFlooded,
    HandlerPrinted,
    Observation,
    Probed,
    Request,
    StepBegan,
    StepEnded,
)

Seen = tuple[Observation, Request]
"""A request of the handler, and the observation it is in."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The step that an expectation counts from."""

    began: timedelta
    ended: timedelta | None
    """None while it is being played."""


_BEGINNING = Anchor(timedelta(0), timedelta(0))


@dataclass(frozen=True)
class Evidence:
    """What has been seen so far."""

    scenario: Scenario
    observations: tuple[Observation, ...]
    now: timedelta
    """How long the scenario has been played."""
    is_over: bool = False
    """Whether nothing more will be seen."""

    @cached_property
    def requests(self) -> list[Seen]:
        """Those of the handler."""
        own = self.scenario.handler_vm.casefold()
        return [
            (each, each.fact)
            for each in self.observations
            if isinstance(each.fact, Request)
            and (each.fact.vm is None or each.fact.vm.casefold() == own)
        ]

    def asked(self, what: What, since: timedelta = timedelta(0)) -> list[Seen]:
        return [
            (each, request)
            for each, request in self.requests
            if each.at >= since and (what is What.ANY or request.what is what)
        ]

    def approvals(self, event_id: EventId) -> list[Seen]:
        """Granted or not."""
        return [pair for pair in self.requests if event_id in pair[1].approves]

    def granted(self, event_id: EventId) -> list[Seen]:
        return [pair for pair in self.approvals(event_id) if pair[1].is_answered]

    @cached_property
    def _ends(self) -> dict[int, tuple[timedelta, StepEnded]]:
        return {
            each.fact.index: (each.at, each.fact)
            for each in self.observations
            if isinstance(each.fact, StepEnded)
        }

    @cached_property
    def _begins(self) -> dict[int, timedelta]:
        return {
            each.fact.index: each.at
            for each in self.observations
            if isinstance(each.fact, StepBegan)
        }

    @cached_property
    def _indexes(self) -> dict[str, int]:
        steps = enumerate(self.scenario.steps)
        return {step.name: index for index, step in steps if step.name is not None}

    def anchor(self, name: str | None) -> Anchor | None:
        """None if the step has not begun; without a name, the beginning of the scenario."""
        if name is None:
            return _BEGINNING
        index = self._indexes[name]
        began, ended = self._begins.get(index), self._ends.get(index)
        return None if began is None else Anchor(began, None if ended is None else ended[0])

    def events(self, name: str) -> tuple[EventId, ...] | None:
        """Those that a step made; None as long as it has not ended."""
        ended = self._ends.get(self._indexes[name])
        return None if ended is None else ended[1].events

    def failed_step(self) -> tuple[Observation, StepEnded] | None:
        """The first step that could not be played."""
        for each in self.observations:
            if isinstance(each.fact, StepEnded) and each.fact.failure:
                return each, each.fact
        return None

    def flood(self) -> tuple[Observation, HandlerFlooded] | None:
        for each in self.observations:
            if isinstance(each.fact, HandlerFlooded):
                return each, each.fact
        return None

    def exits(self, since: timedelta = timedelta(0)) -> Iterator[tuple[Observation, HandlerExited]]:
        for each in self.observations:
            if isinstance(each.fact, HandlerExited) and each.at >= since:
                yield each, each.fact

    def printed(self, text: str, since: timedelta = timedelta(0)) -> Observation | None:
        """The first line that has the text in it."""
        for each in self.observations:
            if (
                isinstance(each.fact, HandlerPrinted)
                and each.at >= since
                and text in each.fact.line
            ):
                return each
        return None

    def probed(self, since: timedelta = timedelta(0)) -> Iterator[tuple[Observation, Probed]]:
        for each in self.observations:
            if isinstance(each.fact, Probed) and each.at >= since:
                yield each, each.fact
