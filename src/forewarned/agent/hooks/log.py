"""Writes a line to the agent's own log."""

import logging
from enum import StrEnum
from typing import Final

from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import HookTable
from forewarned.agent.hooks.templates import check_template, fill_line, values
from forewarned.agent.model import Phase

_log: Final = logging.getLogger(__name__)
_TEXT: Final = '{phase} phase of {type} {event_id} of {resources} (NotBefore: "{not_before}")'


class Level(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_NUMBERS: Final = {
    Level.INFO: logging.INFO,
    Level.WARNING: logging.WARNING,
    Level.ERROR: logging.ERROR,
}


class LogHook(HookTable, frozen=True, kw_only=True):
    """Writes a line to the agent's log."""

    required: bool = False
    """Whether the event is approved only if this hook is done."""
    text: str = _TEXT
    """The line, with placeholders."""
    level: Level = Level.INFO
    """`info`, `warning` or `error`."""

    def __post_init__(self) -> None:
        check_template(self.text)

    @override
    async def run(self, call: Call) -> str:
        told = {name: value for name, value in values(call).items() if value}
        _log.log(
            _NUMBERS[self.level],
            "%s",
            fill_line(self.text, call),
            extra={"hook": call.step, "event": told},
        )
        return ""

    @override
    def describe(self, _phase: Phase) -> str:
        return f"log a line at level {self.level}"
