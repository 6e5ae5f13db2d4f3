"""What every kind of hook can be told in the agent's file.

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
    """After which the hook is ended, and has timed out."""
    retries: Annotated[int, Meta(ge=0, le=100)] = 0
    """How often it is tried again after a failure."""
    required: bool = True
    """Whether the event is approved only if this hook is done."""
    expected: timedelta | None = None
    """How long it usually takes; as long as its timeout if not given."""
    cut: Annotated[int, Meta(ge=0)] = 0
    """Left out where time is short, the highest first; 0 is never left out."""

    @property
    def has_undo(self) -> bool:
        return False

    @property
    def targets(self) -> frozenset[str]:
        """What it changes, where another hook may have changed the same: named as nothing else is.

        Empty where hooks can't be in each other's way, or keep out of it by themselves.
        """
        return frozenset()

    def make(self, name: str) -> Hook:
        """The hook itself. Making it touches nothing."""
        raise NotImplementedError


class UndoableSettings(HookSettings, frozen=True, kw_only=True):
    """A table of a kind that can put back what it changed."""

    undo: bool = True
    """Whether what it changed is put back when the event is over or canceled."""

    @property
    @override
    def has_undo(self) -> bool:
        return self.undo
