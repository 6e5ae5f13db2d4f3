"""`[actuators.NAME]` with `driver = "command"`: what to run for each type of event."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta
from typing_extensions import override

from forewarned.actuators.command.driver import CommandDriver
from forewarned.actuators.decision import Procedure
from forewarned.actuators.driver import Action, Driver, Effect
from forewarned.actuators.table import ActionTable, EventActionsTable
from forewarned.core.model import EventType

_EFFECTS: Final = {
    # A program may move the VM or hold it; the host shows the one, its exit code the other.
    EventType.FREEZE: (Effect.HOLDS, Effect.MOVES),
    EventType.REBOOT: (Effect.RESTARTS, None),
    EventType.REDEPLOY: (Effect.MOVES, None),
    EventType.PREEMPT: (Effect.STOPS, None),
    # A check says whether the VM is up; one that is not up is as good as removed.
    EventType.TERMINATE: (Effect.STOPS, None),
}

_Argv = Annotated[tuple[str, ...], Meta(min_length=1)]


class CommandAction(ActionTable, frozen=True, kw_only=True):
    """What to run for one type of event."""

    argv: _Argv
    """The program and its arguments. No shell is involved."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        _check_argv(self.argv)


class CommandTable(EventActionsTable[CommandAction], frozen=True, kw_only=True):
    """Runs a program for each VM."""

    check: tuple[str, ...] = ()
    """A program that reports the state of a VM: exit code 0 if it is up, 75 if that is unknown, any
    other if it is down. Its last line may be JSON with `host`, `power`, and `witness`, which must
    be different after every restart. Without `check`, the exit codes of the other programs are all
    that is known.
    """
    listing: tuple[str, ...] = ()
    """A program that lists the platform's VMs, for `[[sources]]`. It prints JSON with a list
    `vms`, in which each VM has `vm_id` (a UUID), `name` and `host`, and optionally `address`,
    `port_mark`, `interface`, `availability_set` and `zone`; and optionally `silent`, with
    the hosts that did not answer and why. If it fails, nothing changes."""

    def __post_init__(self) -> None:
        for argv in filter(None, (self.check, self.listing)):
            _check_argv(argv)
        if not self.procedures():
            raise ValueError("no type of event has a program: set reboot, for example")

    @override
    def why_unlisted(self) -> str | None:
        if self.listing:
            return None
        return "set listing in the actuator's table: the program that lists its VMs"

    @override
    def procedures(self) -> Mapping[EventType, Procedure]:
        tables = self.actions()
        return {type_: table.procedure(_action(type_, table)) for type_, table in tables.items()}

    @override
    def opened(self, state: Path) -> AbstractAsyncContextManager[Driver]:
        argvs = {type_: table.argv for type_, table in self.actions().items()}
        return nullcontext(CommandDriver(argvs, self.check, state, listing=self.listing))


def _check_argv(argv: tuple[str, ...]) -> None:
    if not argv[0].startswith("/"):
        raise ValueError(f"the program must be an absolute path, not {argv[0]!r}")
    if any("\0" in part for part in argv):
        raise ValueError("an argument can't contain a NUL")


def _action(type_: EventType, table: CommandAction) -> Action:
    effect, other = _EFFECTS[type_]
    return Action(type=type_, do=" ".join(table.argv), effect=effect, otherwise_effect=other)
