"""What the server writes to standard error: one line per transition, none per poll.

Messages are constant and facts stand beside them, as text for people or as JSON. Names come from
outside, so control characters are escaped: no VM can forge a line (S14).

Every line has the time of this machine, so that it can be compared with other logs. If the server's
clock shows another time, because people have moved it, that time stands beside it.
"""

import json
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from typing_extensions import override

from forewarned.core import transitions
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.transitions import EventTransition, ResourceTransition, Transition
from forewarned.service.records import Commit

_log = logging.getLogger("forewarned")

# The last is uvicorn's: its message again, with the codes of a terminal's colours.
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}

_MOST_NAMES: Final = 10
_CLOSE: Final = timedelta(seconds=2)
"""A virtual clock starts at a whole second, and a poller hears of it a moment later."""


def configure(*, level: str, as_json: bool, clock: Callable[[], datetime] | None = None) -> None:
    """Send the program's log to standard error; `clock` is the server's, where there is one."""
    times = _Times(clock)
    writer = logging.StreamHandler(sys.stderr)
    writer.setFormatter(_JsonLines(times) if as_json else _TextLines(times))
    root = logging.getLogger()
    root.handlers[:] = [writer]
    root.setLevel(level.upper())
    # It warns of each pipeline that a lost connection cuts off, which the store itself reports.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    # They log URLs and headers, at any level: those of hooks and subscriptions hold secrets.
    for library in ("httpx2", "httpcore2"):
        logging.getLogger(library).setLevel(logging.WARNING)


def log_commit(commit: Commit) -> None:
    """A line for each transition; one for all that happened to the VMs of a scope alike."""
    if not _log.isEnabledFor(logging.INFO):
        return
    alike: dict[tuple[str, ScopeId], list[ResourceName]] = {}
    for fact in commit.transitions:
        if isinstance(fact, ResourceTransition):
            alike.setdefault((transitions.action(fact), fact.scope_id), []).append(fact.resource)
        else:
            _log_transition(fact)
    for (action, scope_id), names in alike.items():
        _log.info(action, extra={"scope": scope_id, "resources": _few(names)})


def _log_transition(fact: Transition) -> None:
    facts: dict[str, object] = {"scope": fact.scope_id}
    if isinstance(fact, EventTransition):
        facts |= {"event": fact.event.id, "type": fact.event.type}
    if names := transitions.resources(fact):
        facts["resources"] = _few(names)
    if why := transitions.cause(fact):
        facts["cause"] = why
    _log.info(transitions.action(fact), extra=facts)


def _few(names: Sequence[ResourceName]) -> list[str]:
    """A line with a hundred names is unreadable."""
    if len(names) <= _MOST_NAMES:
        return list(names)
    return [*names[: _MOST_NAMES - 1], f"and {len(names) - _MOST_NAMES + 1} more"]


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _OWN}


@dataclass(frozen=True, slots=True)
class _Times:
    """Of a line, by each clock."""

    clock: Callable[[], datetime] | None

    def of(self, record: logging.LogRecord) -> tuple[datetime, datetime | None]:
        """The machine's time, and the server's where it is another one."""
        real = datetime.fromtimestamp(record.created, UTC)
        shown = None if self.clock is None else self.clock().astimezone(UTC)
        return real, None if shown is None or abs(shown - real) <= _CLOSE else shown


class _JsonLines(logging.Formatter):
    def __init__(self, times: _Times) -> None:
        super().__init__()
        self._times = times

    @override
    def format(self, record: logging.LogRecord) -> str:
        real, shown = self._times.of(record)
        line: dict[str, object] = {
            "at": real.isoformat(),
            **({} if shown is None else {"clock": shown.isoformat()}),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _TextLines(logging.Formatter):
    def __init__(self, times: _Times) -> None:
        super().__init__()
        self._times = times

    @override
    def format(self, record: logging.LogRecord) -> str:
        real, shown = self._times.of(record)
        stamp = _stamp(real) if shown is None else f"{_stamp(real)} (clock {_stamp(shown)})"
        facts = " ".join(
            f"{name}={json.dumps(value, default=str)}" for name, value in _facts(record).items()
        )
        line = f"{stamp} {record.levelname:<7} {_escaped(record.getMessage())}"
        line = f"{line}  {facts}" if facts else line
        if record.exc_info:
            trace = self.formatException(record.exc_info).split("\n")
            line = "\n".join([line, *(f"    {_escaped(part)}" for part in trace)])
        return line


def _stamp(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}Z"


def _escaped(text: str) -> str:
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(
        char if char.isprintable() and char != "\\" else char.encode("unicode_escape").decode()
        for char in text
    )
