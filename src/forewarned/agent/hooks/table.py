"""What all kinds of hooks have in common: a table in the agent's file, and what is done by it.

Each kind is a struct like this one, with its own fields added. The line that describes a field is
the one in the reference. The methods say what is to be done once, and raise a TargetError where
that failed; limits and retries are those of `RetryingHook`.
"""

from datetime import timedelta
from typing import Annotated, ClassVar

from msgspec import Meta, Struct
from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.model import Phase


class HookTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table under `hooks`."""

    retries_undo: ClassVar[bool] = False
    """Whether its undo is retried until the limit, regardless of the number of retries."""

    timeout: timedelta = timedelta(seconds=30)
    """How long the hook may take. After that it is ended, and has timed out."""
    retries: Annotated[int, Meta(ge=0, le=100)] = 0
    """How many times it is tried again after a failure."""
    required: bool = True
    """Whether the event is approved only if this hook is done."""
    expected: timedelta | None = None
    """How long it usually takes; its timeout, if not given."""
    cut: Annotated[int, Meta(ge=0)] = 0
    """When time is short, the hook with the highest number is skipped first; 0 is never skipped."""

    @property
    def has_undo(self) -> bool:
        return False

    @property
    def targets(self) -> frozenset[str]:
        """Unique names of what it changes, where other hooks may change the same.

        Empty where hooks can't conflict, or avoid it themselves.
        """
        return frozenset()

    async def run(self, call: Call) -> str:
        """Prepare or recover, in one attempt. What it returns is shown to people."""
        raise NotImplementedError

    async def put_back(self, call: Call) -> str:  # noqa: ARG002  # for kinds that change something
        """Undo it, in one attempt."""
        return "a hook of this kind is never undone"

    async def check(self) -> list[str]:
        """Problems with its target, one line each."""
        return []

    def describe(self, phase: Phase) -> str:
        """What it would do, in one line."""
        raise NotImplementedError


class UndoableTable(HookTable, frozen=True, kw_only=True):
    """A table of a kind that can undo its changes."""

    retries_undo = True

    undo: bool = True
    """Whether its changes are undone when the event is over or canceled."""

    @property
    @override
    def has_undo(self) -> bool:
        return self.undo
