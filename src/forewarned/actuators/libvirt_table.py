"""`[actuators.NAME]` with `driver = "libvirt"`. Needs no libvirt until it is opened."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec import field
from typing_extensions import override

from forewarned.actuators.decision import Procedure
from forewarned.actuators.driver import Action, Driver, Effect
from forewarned.actuators.libvirt.installation import require
from forewarned.actuators.libvirt.vocabulary import EFFECTS, Word
from forewarned.actuators.table import ActionTable, ActuatorTable
from forewarned.config.mistakes import any_of
from forewarned.core.model import EventType

_WORDS: Final[Mapping[EventType, tuple[Word, ...]]] = {
    EventType.FREEZE: (Word.LIVE_MIGRATE, Word.HOLD),
    EventType.REBOOT: (Word.ACPI, Word.RESET, Word.RESTART),
    EventType.REDEPLOY: (Word.COLD_MOVE, Word.LIVE_MIGRATE),
    EventType.PREEMPT: (Word.SHUTDOWN, Word.DESTROY),
    EventType.TERMINATE: (Word.UNDEFINE, Word.DESTROY, Word.SHUTDOWN),
}
_WILD: Final = frozenset("*?[")


class LibvirtAction(ActionTable, frozen=True, kw_only=True):
    """What to do for one type of event."""

    do: Word
    """What to do."""
    otherwise: Word | None = field(default=None, name="else")
    """What to do if that is not possible, or has had no effect within the patience."""
    patience: timedelta | None = None
    """How long the first way may take before the other is gone."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience is not None and self.otherwise is None:
            raise ValueError('patience is for what has an "else"')


class LibvirtTable(ActuatorTable, frozen=True, kw_only=True):
    """Acts on VMs of hosts with libvirt."""

    uri: str
    """Where the libvirt of a host is, with `{host}` for its name."""
    targets: tuple[str, ...] = ()
    """The hosts that VMs may be moved to, by name; if not given, those in `hosts`."""
    peer_uri: str | None = None
    """Where a host finds the libvirt of the host that a VM is moved to, with `{target}` for its
    name; `uri` if not given."""
    migrate_to: str | None = None
    """Where a host sends a VM's memory, with `{target}`: `tcp://{target}-mig`. libvirt decides if
    not given."""
    freeze: LibvirtAction | None = None
    """`live-migrate` or `hold`."""
    reboot: LibvirtAction | None = None
    """`acpi`, `reset` or `restart`."""
    redeploy: LibvirtAction | None = None
    """`cold-move` or `live-migrate`."""
    preempt: LibvirtAction | None = None
    """`shutdown` or `destroy`."""
    terminate: LibvirtAction | None = None
    """`undefine`, `destroy` or `shutdown`."""

    def __post_init__(self) -> None:
        actions = self._actions()
        for type_, table in actions.items():
            for word in (table.do, table.otherwise):
                if word is not None and word not in _WORDS[type_]:
                    allowed = any_of([*_WORDS[type_]])
                    raise ValueError(f"{type_.lower()} can't {word}: expected {allowed}")
        moves = any(Effect.MOVES in each.action.effects for each in self.procedures().values())
        if moves and not self.targets and any(_WILD & set(host) for host in self.hosts):
            raise ValueError("name the hosts that VMs may be moved to in targets")

    @override
    def procedures(self) -> Mapping[EventType, Procedure]:
        tables = self._actions()
        return {type_: table.procedure(_action(type_, table)) for type_, table in tables.items()}

    @override
    def opened(self, state: Path) -> AbstractAsyncContextManager[Driver]:
        require()
        # Here, because an actuator of another kind needs no libvirt.
        from forewarned.actuators.libvirt.driver import LibvirtDriver  # noqa: PLC0415
        from forewarned.actuators.libvirt.migration import Routes  # noqa: PLC0415

        peer = self.peer_uri or self.uri.replace("{host}", "{target}")
        routes = Routes(peer=peer, memory=self.migrate_to)
        return LibvirtDriver(self.targets or self.hosts, uri=self.uri, routes=routes)

    def _actions(self) -> Mapping[EventType, LibvirtAction]:
        tables = {
            EventType.FREEZE: self.freeze,
            EventType.REBOOT: self.reboot,
            EventType.REDEPLOY: self.redeploy,
            EventType.PREEMPT: self.preempt,
            EventType.TERMINATE: self.terminate,
        }
        return {type_: table for type_, table in tables.items() if table is not None}


def _action(type_: EventType, table: LibvirtAction) -> Action:
    return Action(
        type=type_,
        do=table.do,
        effect=EFFECTS[table.do],
        otherwise=table.otherwise,
        otherwise_effect=None if table.otherwise is None else EFFECTS[table.otherwise],
        patience=table.patience,
    )
