"""What all `[actuators.NAME]` have in common. Each driver's table adds its own fields.

The line that describes a field is the one in the reference.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Generic, Protocol, TypeVar

from msgspec import Meta, Struct, field

from forewarned.actuators.actuator import Equipped
from forewarned.actuators.decision import OnDoubt, Procedure
from forewarned.actuators.driver import Action, Driver, Effect
from forewarned.actuators.slots import Limits
from forewarned.config.mistakes import any_of
from forewarned.core.model import EventType

_REPEATED: Final = frozenset({EventType.FREEZE, EventType.REDEPLOY})
"""The host shows what became of them, and a second time does no more than the first."""


class ActionTable(Struct, frozen=True, kw_only=True):
    """How one type of event is carried out."""

    timeout: timedelta = timedelta(minutes=10)
    """How long it may take. After that it is stopped, and has failed."""
    retries: Annotated[int, Meta(ge=0, le=100)] = 0
    """How many times it is tried again after a failure that has left the VM as it was."""
    on_doubt: OnDoubt | None = None
    """What to do if nothing shows whether an actuator that died had done it: `repeat` or `stop`.
    If not given, `repeat` for Freeze and Redeploy, and `stop` for the others."""

    def __post_init__(self) -> None:
        if self.timeout <= timedelta(0):
            raise ValueError("timeout must be more than 0s")

    def procedure(self, action: Action) -> Procedure:
        default = OnDoubt.REPEAT if action.type in _REPEATED else OnDoubt.STOP
        return Procedure(
            action=action,
            timeout=self.timeout,
            retries=self.retries,
            on_doubt=self.on_doubt or default,
        )


A = TypeVar("A", bound=ActionTable)


class Way(Protocol):
    """A choice among a driver's words for one type of event."""

    @property
    def do(self) -> str: ...
    @property
    def otherwise(self) -> str | None: ...
    @property
    def patience(self) -> timedelta | None: ...


def refuse_unfit(ways: Mapping[EventType, Way], words: Mapping[EventType, tuple[str, ...]]) -> None:
    """Raises ValueError if there is no way at all, or one that is not for its type of event."""
    if not ways:
        raise ValueError("no type of event has an action: set reboot, for example")
    for type_, way in ways.items():
        for word in filter(None, (way.do, way.otherwise)):
            if word not in words[type_]:
                known = any_of([*words[type_]])
                raise ValueError(f"{type_.lower()} can be {known}, not {word}")


def action_of(type_: EventType, way: Way, effects: Mapping[str, Effect]) -> Action:
    otherwise = way.otherwise
    return Action(
        type=type_,
        do=way.do,
        effect=effects[way.do],
        otherwise=otherwise,
        otherwise_effect=None if otherwise is None else effects[otherwise],
        patience=way.patience,
    )


class ActuatorTable(Struct, frozen=True, kw_only=True):
    """A table `[actuators.NAME]`."""

    hosts: tuple[str, ...] = ()
    """The hosts whose VMs it acts on, like `hv-*`, if the fleet does not say otherwise."""
    limits: Limits = field(default_factory=Limits)
    """How many VMs it acts on at once."""
    dry_run: bool = False
    """Whether it only says what it would do. Its events are completed as not carried out."""

    @property
    def is_remote(self) -> bool:
        """Whether it is run on another machine."""
        return False

    def why_unlisted(self) -> str | None:
        """Why its driver can't be a source; None if it can."""
        return "this actuator's driver can't list VMs: declare them in a fleet file"

    def procedures(self) -> Mapping[EventType, Procedure]:
        """By type; none for a type that it can't carry out."""
        raise NotImplementedError

    def opened(self, state: Path) -> AbstractAsyncContextManager[Driver]:
        """`state` is a directory for what must outlive the process; it may not exist yet."""
        raise NotImplementedError

    @asynccontextmanager
    async def equipped(self, state: Path) -> AsyncIterator[Equipped]:
        async with self.opened(state) as driver:
            yield Equipped(
                driver=driver,
                procedures=self.procedures(),
                limits=self.limits,
                dry_run=self.dry_run,
            )


class EventActionsTable(ActuatorTable, Generic[A], frozen=True, kw_only=True):
    """A table with an action of its own for each type of event."""

    freeze: A | None = None
    """For Freeze events."""
    reboot: A | None = None
    """For Reboot events."""
    redeploy: A | None = None
    """For Redeploy events."""
    preempt: A | None = None
    """For Preempt events."""
    terminate: A | None = None
    """For Terminate events."""

    def actions(self) -> Mapping[EventType, A]:
        """Those that are given."""
        tables = {
            EventType.FREEZE: self.freeze,
            EventType.REBOOT: self.reboot,
            EventType.REDEPLOY: self.redeploy,
            EventType.PREEMPT: self.preempt,
            EventType.TERMINATE: self.terminate,
        }
        return {type_: table for type_, table in tables.items() if table is not None}
