"""`[actuators.NAME]` with `driver = "openstack"`."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec import field
from typing_extensions import override

from forewarned.actuators.decision import Procedure
from forewarned.actuators.driver import Driver
from forewarned.actuators.openstack.driver import OpenStackDriver
from forewarned.actuators.openstack.session import Cloud, Interface
from forewarned.actuators.openstack.vocabulary import EFFECTS, Word
from forewarned.actuators.table import ActionTable, EventActionsTable, action_of, refuse_unfit
from forewarned.core.model import EventType
from forewarned.targets.urls import check_url

_WORDS: Final = {
    EventType.FREEZE: (Word.LIVE_MIGRATE,),
    EventType.REBOOT: (Word.SOFT_REBOOT, Word.HARD_REBOOT),
    EventType.REDEPLOY: (Word.COLD_MOVE, Word.LIVE_MIGRATE),
    EventType.PREEMPT: (Word.STOP, Word.DELETE),
    EventType.TERMINATE: (Word.DELETE,),
}
"""An event of a type must not do to a VM what its guest was not told."""


class OpenStackAction(ActionTable, frozen=True, kw_only=True):
    """What to do for one type of event."""

    do: Word
    """Freeze: `live-migrate`. Reboot: `soft-reboot` or `hard-reboot`. Redeploy: `cold-move` (which
    is confirmed) or `live-migrate`. Preempt: `stop` or `delete`. Terminate: `delete`."""
    otherwise: Word | None = field(default=None, name="else")
    """What to do if that can't be done, or has had no effect within `patience`."""
    patience: timedelta | None = None
    """How long the first way may take. If not given, up to `timeout`. A `cold-move` may always take
    up to `timeout`, whatever this says."""


class OpenStackTable(EventActionsTable[OpenStackAction], frozen=True, kw_only=True):
    """Acts on VMs of an OpenStack cloud through Nova, as an administrator."""

    auth_url: str
    """Keystone's URL: `https://cloud.example:5000/v3`."""
    credential_id: str
    """The id of an application credential of a user with the role `admin`."""
    secret_file: Path
    """A file with the secret of that credential."""
    region: str = ""
    """The region whose Nova is used. If not given, the first in the catalog."""
    interface: Interface = Interface.PUBLIC
    """Which of Nova's URLs in the catalog is used: `public`, `internal` or `admin`."""
    ca_file: Path | None = None
    """A file with the certificate of the authority that signed those of Keystone and Nova, if the
    system does not trust it.
    """

    def __post_init__(self) -> None:
        check_url(self.auth_url)
        refuse_unfit(self.actions(), _WORDS)

    @property
    def cloud(self) -> Cloud:
        return Cloud(
            auth_url=self.auth_url,
            credential_id=self.credential_id,
            secret_file=str(self.secret_file),
            region=self.region,
            interface=self.interface,
            ca_file=None if self.ca_file is None else str(self.ca_file),
        )

    @override
    def why_unlisted(self) -> str | None:
        return None

    @override
    def procedures(self) -> Mapping[EventType, Procedure]:
        tables = self.actions()
        return {
            type_: table.procedure(action_of(type_, table, EFFECTS))
            for type_, table in tables.items()
        }

    @override
    @asynccontextmanager
    async def opened(self, state: Path) -> AsyncIterator[Driver]:
        yield OpenStackDriver(self.cloud, hosts=self.hosts)
