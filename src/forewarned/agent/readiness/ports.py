"""How the agents of one event learn that all of them are ready, for `leader = "all-ready"`.

Every agent says how far it is, again and again: that is its heartbeat. Who is ready stays ready,
also if its agent dies then. Who is silent for longer than the time-out is not waited for: its VM
may be down already, and the others would all be interrupted unapproved because of it. Who refuses
is waited for until NotBefore, as long as its agent lives.

Nobody's clock is compared with anybody else's: what counts is when this agent saw a beat change.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol


class Standing(StrEnum):
    """How far an agent is with an event."""

    PREPARING = "preparing"
    READY = "ready"
    REFUSES = "refuses"
    """Its hooks have run, and it must not be approved: one has vetoed, or a required one failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    standing: Standing
    beat: int
    """Moves with every report. It is counted by whoever reports, and only ever compared with `!=`
    by those who read, so that an agent that starts anew may begin it anew."""


class ReadinessError(Exception):
    """What the agents share can't be reached. Nobody is ready because of that."""


class Readiness(Protocol):
    """Where reports are kept. Every method raises ReadinessError."""

    async def report(self, event_id: str, me: str, report: Report) -> None:
        """Replace this agent's report, if it has made one."""

    async def reports(self, event_id: str) -> Mapping[str, Report]:
        """By the name of the VM, in whatever letter case."""

    async def forget(self, event_id: str, me: str) -> None:
        """Take this agent's report away: the event is over."""


class RollCall:
    """What one agent knows of the others of one event. Time is given, by any steady clock."""

    def __init__(self, names: Iterable[str], *, patience: timedelta, now: timedelta) -> None:
        self._patience = patience
        # Whoever has never been heard has the same time to come as one that was heard just now.
        self._heard = {name.lower(): now for name in names}
        self._reports: dict[str, Report] = {}

    def hear(self, reports: Mapping[str, Report], *, now: timedelta) -> None:
        for name, report in reports.items():
            key = name.lower()
            if self._reports.get(key) != report:
                self._heard[key] = now
                self._reports[key] = report

    def ready(self) -> frozenset[str]:
        return frozenset(
            name for name, report in self._reports.items() if report.standing is Standing.READY
        )

    def silent(self, *, now: timedelta) -> frozenset[str]:
        """Those who are not waited for any longer."""
        return frozenset(
            name
            for name, heard in self._heard.items()
            if now - heard > self._patience and name not in self.ready()
        )
