"""What `forewarned doctor` finds."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    PROBLEM = "problem"
    """The server does not start, or does not do its work."""
    WARNING = "warning"
    """It works, but not as it should, or not for long."""
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    code: str
    """For programs. It does not change from version to version."""
    severity: Severity
    where: str
    """A setting, a file, an address, an event."""
    what: str
    todo: str
    """What to do; empty if `what` says it."""


def problem(code: str, *, where: str, what: str, todo: str = "") -> Finding:
    return Finding(code=code, severity=Severity.PROBLEM, where=where, what=what, todo=todo)


def warning(code: str, *, where: str, what: str, todo: str = "") -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=where, what=what, todo=todo)


def note(code: str, *, where: str, what: str, todo: str = "") -> Finding:
    return Finding(code=code, severity=Severity.NOTE, where=where, what=what, todo=todo)
