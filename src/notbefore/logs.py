"""What the server writes to standard error: one line per transition, none per poll.

Messages are constant and facts stand beside them, as text for people or as JSON. Names come from
outside, so control characters are escaped: no VM can forge a line.
"""

import json
import logging
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

from notbefore.core import transitions
from notbefore.core.ids import ResourceName, ScopeId
from notbefore.core.transitions import EventTransition, ResourceTransition, Transition
from notbefore.service.ports import Commit

_log = logging.getLogger("notbefore")

# The last is uvicorn's: its message again, with the codes of a terminal's colours.
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}

_MOST_NAMES: Final = 10


def configure(*, level: str, as_json: bool, stamp: Callable[[], datetime]) -> None:
    """Send the program's log to standard error, stamped with the server's clock."""
    writer = logging.StreamHandler(sys.stderr)
    writer.setFormatter(_JsonLines(stamp) if as_json else _TextLines(stamp))
    root = logging.getLogger()
    root.handlers[:] = [writer]
    root.setLevel(level.upper())


def log_commit(commit: Commit) -> None:
    """A line for each transition; one for all that befell the VMs of a scope alike."""
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
    """A line of a hundred names is read by nobody."""
    if len(names) <= _MOST_NAMES:
        return list(names)
    return [*names[: _MOST_NAMES - 1], f"and {len(names) - _MOST_NAMES + 1} more"]


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _OWN}


class _JsonLines(logging.Formatter):
    def __init__(self, stamp: Callable[[], datetime]) -> None:
        super().__init__()
        self._stamp = stamp

    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": self._stamp().astimezone(UTC).isoformat(),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _TextLines(logging.Formatter):
    def __init__(self, stamp: Callable[[], datetime]) -> None:
        super().__init__()
        self._stamp = stamp

    @override
    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(
            f"{name}={json.dumps(value, default=str)}" for name, value in _facts(record).items()
        )
        message = json.dumps(record.getMessage(), ensure_ascii=False)[1:-1]
        line = f"{self._stamp():%Y-%m-%d %H:%M:%S}Z {record.levelname:<7} {message}"
        line = f"{line}  {facts}" if facts else line
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line
