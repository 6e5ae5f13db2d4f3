"""Numbers about the agent, in Prometheus's text format."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from forewarned.agent.model import HookOutcome, Turn
from forewarned.agent.status.wire import BEFORE_START, AgentStatus, Stage
from forewarned.config.durations import parse_duration

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Counters:
    """What is counted where it happens, since the agent started."""

    hooks: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Ended, by step, phase and verdict."""
    hook_seconds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By step and phase."""
    approvals: int = 0
    approvals_failed: int = 0

    def ended(self, turn: Turn, outcome: HookOutcome) -> None:
        self.hooks[turn.step, str(turn.phase), str(outcome.verdict)] += 1
        if outcome.took is not None:
            # The type of a Counter's values is int; that of what it counts need not be.
            self.hook_seconds[turn.step, str(turn.phase)] += outcome.took.total_seconds()  # type: ignore[assignment]


def render(status: AgentStatus, counters: Counters, *, age: timedelta | None) -> str:
    """`age` is that of the last good document."""
    return "".join(f"{line}\n" for line in _lines(status, counters, age))


def _lines(status: AgentStatus, counters: Counters, age: timedelta | None) -> Iterator[str]:
    yield from _metric(
        "healthy",
        "Whether documents can be read.",
        [({}, int(status.healthy))],
    )
    yield from _metric(
        "ready",
        "Whether the VM may be used: 0 from the first prepare hook until all is undone.",
        [({}, int(status.ready))],
    )
    yield from _metric(
        "document_age_seconds",
        "Seconds since the last valid document; absent before the first.",
        [] if age is None else [({}, age.total_seconds())],
    )
    stages = Counter(event.stage for event in status.events)
    yield from _metric(
        "events",
        "Events of this VM that the agent remembers, by stage.",
        [({"stage": str(stage)}, stages[stage]) for stage in Stage],
    )
    yield from _metric(
        "seconds_to_not_before",
        "Seconds until NotBefore, for each event that has not started.",
        [
            ({"event": event.event_id, "type": event.type}, _seconds(event.time_left))
            for event in status.events
            if event.stage in BEFORE_START and event.time_left is not None
        ],
    )
    yield from _metric(
        "not_put_back",
        "Steps whose undo failed or was interrupted, of events that the agent remembers.",
        [({}, sum(len(event.not_put_back) for event in status.events))],
    )
    yield from _metric(
        "events_reappeared",
        "Events that are shown again after they were gone, which the agent ignores.",
        [({}, sum(event.reappeared for event in status.events))],
    )
    yield from _metric(
        "hooks_total",
        "Hooks that have ended, by outcome.",
        [
            ({"step": step, "phase": phase, "verdict": verdict}, count)
            for (step, phase, verdict), count in sorted(counters.hooks.items())
        ],
    )
    yield from _metric(
        "hook_seconds_total",
        "How long hooks ran.",
        [
            ({"step": step, "phase": phase}, seconds)
            for (step, phase), seconds in sorted(counters.hook_seconds.items())
        ],
    )
    yield from _metric(
        "approvals_total",
        "Approvals that were sent, by whether the service accepted them.",
        [({"taken": "yes"}, counters.approvals), ({"taken": "no"}, counters.approvals_failed)],
    )


def _metric(
    what: str, meaning: str, samples: Iterable[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    name = f"forewarned_agent_{what}"
    kind = "counter" if what.endswith("_total") else "gauge"
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{inner}}} {value}" if inner else f"{name} {value}"


def _escaped(text: str) -> str:
    """Ids and names come from outside: none may end its line."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _seconds(text: str) -> float:
    # A NotBefore that has come is written with a minus, which durations have not.
    sign = -1 if text.startswith("-") else 1
    return sign * parse_duration(text.removeprefix("-")).total_seconds()
