"""The fields that every kind of hook has in the agent's file.

Each kind's own table is a struct like this one, with its own fields added. The line that describes
a field is the one in the reference.
"""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta, Struct
from typing_extensions import override

from forewarned.agent.hooks.ports import Hook


class HookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table under `hooks`."""

    timeout: timedelta = timedelta(seconds=30)
    """How long the hook may take. After that it is ended, and has timed out."""
    retries: Annotated[int, Meta(ge=0, le=100)] = 0
    """How many times it is tried again after a failure."""
    required: bool = True
    """Whether the event is approved only if this hook is done."""
    expected: timedelta | None = None
    """How long it usually takes; its timeout, if not given."""
    cut: Annotated[int, Meta(ge=0)] = 0
    """Hooks to skip when time is short, the highest number first; 0 is never skipped."""

    @property
    def has_undo(self) -> bool:
        return False

    @property
    def targets(self) -> frozenset[str]:
        """Unique names of what it changes, where other hooks may change the same.

        Empty where hooks can't conflict, or avoid it themselves.
        """
        return frozenset()

    def make(self, name: str) -> Hook:
        """The hook itself. Making it has no side effects."""
        raise NotImplementedError


class UndoableSettings(HookSettings, frozen=True, kw_only=True):
    """A table of a kind that can undo its changes."""

    undo: bool = True
    """Whether its changes are undone when the event is over or canceled."""

    @property
    @override
    def has_undo(self) -> bool:
        return self.undo
