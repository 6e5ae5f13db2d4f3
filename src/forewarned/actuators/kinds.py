"""Every kind of actuator, by the name that `driver` has in `[actuators.NAME]`."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from typing_extensions import override

from forewarned.actuators.command.table import CommandTable
from forewarned.actuators.decision import Procedure
from forewarned.actuators.driver import Driver
from forewarned.actuators.libvirt.table import LibvirtTable
from forewarned.actuators.openstack.table import OpenStackTable
from forewarned.actuators.table import ActuatorTable
from forewarned.actuators.webhook import WebhookTable
from forewarned.core.model import EventType


class RemoteTable(ActuatorTable, frozen=True, kw_only=True):
    """Runs on another machine, with `forewarned actuator run` and a table of its own."""

    @property
    @override
    def is_remote(self) -> bool:
        return True

    @override
    def why_unlisted(self) -> str | None:
        return "this actuator runs on another machine: put [[sources]] in its file on that machine"

    @override
    def procedures(self) -> Mapping[EventType, Procedure]:
        return {}

    @override
    def opened(self, state: Path) -> AbstractAsyncContextManager[Driver]:
        raise NotImplementedError("it runs on another machine")


KINDS: Final[Mapping[str, type[ActuatorTable]]] = {
    "command": CommandTable,
    "webhook": WebhookTable,
    "libvirt": LibvirtTable,
    "openstack": OpenStackTable,
    "remote": RemoteTable,
}
