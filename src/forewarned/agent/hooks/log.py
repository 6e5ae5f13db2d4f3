"""Writes a line to the agent's own log."""

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from typing_extensions import override

from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.hooks.retries import RetryingHook
from forewarned.agent.hooks.settings import HookSettings
from forewarned.agent.hooks.templates import check_template, fill_line, values
from forewarned.agent.model import Phase

_log: Final = logging.getLogger(__name__)
_TEXT: Final = "{phase} for {type} {event_id} of {resources}, not before {not_before}"


class Level(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_NUMBERS: Final = {
    Level.INFO: logging.INFO,
    Level.WARNING: logging.WARNING,
    Level.ERROR: logging.ERROR,
}


class LogSettings(HookSettings, frozen=True, kw_only=True):
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
    def make(self, name: str) -> Hook:
        return RetryingHook(_Log(self, name), retries=self.retries)


@dataclass(frozen=True, slots=True)
class _Log:
    settings: LogSettings
    name: str
    retries_undo = False

    async def run(self, call: Call) -> str:
        told = {name: value for name, value in values(call).items() if value}
        _log.log(
            _NUMBERS[self.settings.level],
            "%s",
            fill_line(self.settings.text, call),
            extra={"hook": self.name, "event": told},
        )
        return ""

    async def undo(self, _call: Call) -> str:
        return "a log line can't be undone"

    async def check(self) -> list[str]:
        return []

    def describe(self, _phase: Phase) -> str:
        return f"log a line, as {self.settings.level}"
