"""`[actuators.NAME]` with `driver = "libvirt"`. Needs no libvirt until the driver is opened."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec import field
from typing_extensions import override

from forewarned.actuators.decision import Procedure
from forewarned.actuators.driver import Driver
from forewarned.actuators.libvirt.installation import LibvirtMissingError, require
from forewarned.actuators.libvirt.vocabulary import EFFECTS, Word
from forewarned.actuators.table import ActionTable, EventActionsTable, action_of, refuse_unfit
from forewarned.core.model import EventType

_WORDS: Final = {
    EventType.FREEZE: (Word.LIVE_MIGRATE, Word.HOLD),
    EventType.REBOOT: (Word.ACPI, Word.RESET, Word.RESTART),
    EventType.REDEPLOY: (Word.COLD_MOVE, Word.LIVE_MIGRATE),
    EventType.PREEMPT: (Word.SHUTDOWN, Word.DESTROY),
    EventType.TERMINATE: (Word.UNDEFINE, Word.SHUTDOWN, Word.DESTROY),
}
"""An event of a type must not do to a VM what its guest was not told."""


class LibvirtAction(ActionTable, frozen=True, kw_only=True):
    """What to do for one type of event."""

    do: Word
    """Freeze: `live-migrate` or `hold` (the VM is suspended, and then resumed). Reboot: `acpi`
    (the power button), `reset`, or `restart` (off and on). Redeploy: `cold-move` or `live-migrate`.
    Preempt: `shutdown` (the power button) or `destroy` (off). Terminate: `undefine`, `shutdown` or
    `destroy`; disks stay."""
    otherwise: Word | None = field(default=None, name="else")
    """What to do if that can't be done, or has had no effect within `patience`."""
    patience: timedelta | None = None
    """How long the first way may take, and for `cold-move`, how long the guest has to shut down
    before it is switched off. If not given, the first way may take up to `timeout`, and a
    `cold-move` switches the guest off at once."""

    @property
    def is_by_switch(self) -> bool:
        return {self.do, self.otherwise or self.do} == {Word.RESTART}


class LibvirtTable(EventActionsTable[LibvirtAction], frozen=True, kw_only=True):
    """Acts on VMs of QEMU/KVM hosts through libvirt. Needs the extra `libvirt`."""

    uri: str
    """The URI at which the actuator reaches libvirt on a host; `{host}` stands for the host's name:
    `qemu+tls://{host}/system`."""
    targets: tuple[str, ...] = ()
    """The hosts that VMs may be moved to, by their names. They are also searched for VMs that are
    no longer where the fleet says. If not given, the entries of `hosts` that are names rather than
    patterns."""
    peer_uri: str | None = None
    """The URI at which libvirt on one host reaches libvirt on another; `{target}` stands for the
    other host's name. If not given, the same as `uri`."""
    migrate_to: str | None = None
    """The URI at which a host receives the memory of VMs; `{target}` stands for its name: `tcp://{target}-mig`.
    If not given, libvirt decides."""

    def __post_init__(self) -> None:
        try:
            require()
        except LibvirtMissingError as error:
            raise ValueError(str(error)) from error
        refuse_unfit(self.actions(), _WORDS)

    @override
    def why_unlisted(self) -> str | None:
        if self._named_hosts():
            return None
        return "can't tell which hosts to list: set targets, or write hosts without * and ?"

    @override
    def procedures(self) -> Mapping[EventType, Procedure]:
        return {
            type_: table.procedure(
                replace(action_of(type_, table, EFFECTS), by_switch=table.is_by_switch)
            )
            for type_, table in self.actions().items()
        }

    @override
    def opened(self, state: Path) -> AbstractAsyncContextManager[Driver]:
        # They need libvirt, which is there if this table could be read.
        from forewarned.actuators.libvirt.driver import LibvirtDriver  # noqa: PLC0415
        from forewarned.actuators.libvirt.migration import Routes  # noqa: PLC0415

        peer = self.peer_uri or self.uri.replace("{host}", "{target}")
        routes = Routes(peer=peer, memory=self.migrate_to)
        return LibvirtDriver(self._named_hosts(), uri=self.uri, routes=routes)

    def _named_hosts(self) -> tuple[str, ...]:
        named = tuple(name for name in self.hosts if not set(name) & set("*?["))
        return self.targets or named
