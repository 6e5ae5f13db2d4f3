"""How the agents of one event learn that all of them are ready, for `leader = "all-ready"`.

Every agent reports how far it is, again and again: that is its heartbeat. A VM that is ready stays
ready, even if its agent dies then. An agent that is silent for longer than the timeout is not
waited for: its VM may be down already, and because of it all others would be interrupted
unapproved. An agent that refuses is waited for until NotBefore, as long as its heartbeat goes on.

Clocks of different VMs are never compared: what counts is when this agent saw a beat change.
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
class ReadinessReport:
    standing: Standing
    beat: int
    """Changes with every report. Readers only compare it with `!=`, so an agent that restarts may
    start counting again."""


class ReadinessError(Exception):
    """Reports can't be read or written. No agent counts as ready because of that."""


class Readiness(Protocol):
    """Where agents exchange reports. Every method raises ReadinessError."""

    async def report(self, event_id: str, me: str, report: ReadinessReport) -> None:
        """Replace this agent's report, if it has made one."""

    async def reports(self, event_id: str) -> Mapping[str, ReadinessReport]:
        """By the name of the VM, in whatever letter case."""

    async def forget(self, event_id: str, me: str) -> None:
        """Take this agent's report away: the event is over."""


class RollCall:
    """What one agent knows about the others of an event. Time is given, by any steady clock."""

    def __init__(self, names: Iterable[str], *, patience: timedelta, now: timedelta) -> None:
        self._patience = patience
        # An agent that was never heard gets as much time as one that was heard just now.
        self._heard = {name.lower(): now for name in names}
        self._reports: dict[str, ReadinessReport] = {}

    def hear(self, reports: Mapping[str, ReadinessReport], *, now: timedelta) -> None:
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
        """Those that are not waited for."""
        return frozenset(
            name
            for name, heard in self._heard.items()
            if now - heard > self._patience and name not in self.ready()
        )
