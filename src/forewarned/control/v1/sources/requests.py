"""What is reported about sources."""

from datetime import timedelta
from typing import Annotated

import msgspec

from forewarned.control.v1.request_wire import Ask, Instant, Text
from forewarned.control.v1.wire import LONGEST_SPAN, about
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.sources.intake import SourceReport
from forewarned.service.sources.listing import ListedVm, Listing

_PLAN = FleetPlan()
_LONGEST = LONGEST_SPAN.total_seconds()


class VmReport(Ask, frozen=True):
    vm_id: Annotated[Text, about("its UUID on the platform")]
    name: Text
    host: Text
    address: Annotated[str, about("empty: none")] = ""
    port_mark: Annotated[int | None, about("the mark that its host puts on its packets")] = None
    interface: Annotated[
        str, about("its port on the host's bridge; empty if the port has no lasting name")
    ] = ""
    availability_set: str = ""
    zone: str = ""

    def listed(self) -> ListedVm:
        return ListedVm(
            # Platforms write the same UUID in either case.
            vm_id=self.vm_id.lower(),
            name=self.name,
            host=self.host,
            address=self.address,
            port_mark=self.port_mark,
            interface=self.interface,
            availability_set=self.availability_set,
            zone=self.zone,
        )


class ReportListing(Ask, frozen=True):
    holder: Annotated[str, about("who makes the listing, to show to people: a host and a process")]
    every: Annotated[
        float, msgspec.Meta(gt=0, le=_LONGEST, description="seconds between two listings")
    ]
    vms: Annotated[
        tuple[VmReport, ...] | None, about("all VMs of the platform; null if it can't be listed")
    ]
    silent: Annotated[dict[str, str], about("hosts that did not answer, each with the reason")] = (
        msgspec.field(default_factory=dict)
    )
    error: Annotated[str, about("why the platform can't be listed")] = ""
    began_at: Annotated[
        Instant | None,
        about(
            "when the listing began, as `begin_listing` returned it; null: taken to be two minutes"
            " ago"
        ),
    ] = None
    location: str = _PLAN.location
    resource_group: str = _PLAN.resource_group
    subscription_id: str = _PLAN.subscription_id

    def report(self, name: str) -> SourceReport:
        listing = None
        if self.vms is not None:
            vms = tuple(each.listed() for each in self.vms)
            listing = Listing(vms=vms, silent=self.silent)
        return SourceReport(
            name=name,
            holder=self.holder,
            every=timedelta(seconds=self.every),
            listing=listing,
            error=self.error,
            began_at=self.began_at,
            where=FleetPlan(
                location=self.location,
                resource_group=self.resource_group,
                subscription_id=self.subscription_id,
            ),
        )
