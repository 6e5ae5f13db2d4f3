"""What is asked about drains: bodies and query parameters."""

from typing import Annotated

import msgspec

from forewarned.control.v1.request_wire import Ask, Text
from forewarned.control.v1.wire import Span, about
from forewarned.core.model import EventType
from forewarned.service.drains import model
from forewarned.service.drains.model import DrainOrder


class DrainHost(Ask, frozen=True):
    type: Annotated[EventType, about("Freeze for live migration, Redeploy for a cold move")] = (
        EventType.FREEZE
    )
    wave: Annotated[
        int, msgspec.Meta(ge=1, le=10_000, description="VMs with the same NotBefore")
    ] = 4
    notice: Span | None = None
    short_notice: Annotated[bool, about("allow a notice below the minimum; emulators only")] = False
    deadline: Annotated[Span | None, about("how long from now until the host must be empty")] = None
    dry_run: Annotated[bool, about("only find out which VMs can be moved")] = False
    anyway: Annotated[
        bool, about("go ahead even if some VMs can't be moved, or don't read their document")
    ] = False

    def order(self) -> DrainOrder:
        return DrainOrder(
            type=self.type,
            wave=self.wave,
            notice=None if self.notice is None else self.notice.length,
            short_notice=self.short_notice,
            deadline=None if self.deadline is None else self.deadline.length,
            dry_run=self.dry_run,
            anyway=self.anyway,
        )


class UndrainQuery(Ask, frozen=True):
    returns: Annotated[
        bool, about("also move the VMs that were moved away back to the host, each with notice")
    ] = msgspec.field(default=False, name="return")


class QuestionsQuery(Ask, frozen=True):
    actuator: Text


class SurveyAnswer(Ask, frozen=True):
    vm: Text
    possible: bool
    reason: Annotated[str, about("why it can't be moved")] = ""
    target: Annotated[str | None, about("the host it would be moved to")] = None


class HostListing(Ask, frozen=True):
    actuator: Text
    vms: Annotated[
        tuple[str, ...] | None,
        about("the VMs that the platform has on the host; null: it can't list them"),
    ]
    error: Annotated[str, about("why it could not list them this time")] = ""

    def listing(self) -> model.HostListing:
        return model.HostListing(actuator=self.actuator, vms=self.vms, error=self.error)
