"""Every use case of the service, as the one value that the listeners and the feed call."""

from collections.abc import Callable
from dataclasses import dataclass

from forewarned.core.ids import EventId
from forewarned.core.model import Actor
from forewarned.core.rules import Rules
from forewarned.service.azure.context import AzureContext, Ids
from forewarned.service.clock_control import ClockControl
from forewarned.service.drains.host_drains import HostDrains
from forewarned.service.engine import Engine
from forewarned.service.events.approval import Approvals
from forewarned.service.events.explain import Explainer
from forewarned.service.events.schedule import Scheduler
from forewarned.service.faults import Faults
from forewarned.service.fleet.apply import Fleet
from forewarned.service.fleet.declaration import Network
from forewarned.service.history.keeper import HistoryKeeper
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.lifecycle.actuation import Actuation
from forewarned.service.lifecycle.tasks import Tasks
from forewarned.service.readiness import Readiness
from forewarned.service.requests.watch import RequestWatch
from forewarned.service.sources.intake import Sources
from forewarned.service.subscriptions.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What every use case goes by, besides the store and the clock."""

    rules: Rules
    new_event_id: Callable[[], EventId]
    new_id: Callable[[], str]
    """A GUID in lower case, for whatever is not an event."""
    address_range: Network
    """Where new VMs get their addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    engine: Engine
    basis: Basis
    scheduler: Scheduler
    approvals: Approvals
    actuation: Actuation
    tasks: Tasks
    drains: HostDrains
    explainer: Explainer
    activation: Activation
    readiness: Readiness
    fleet: Fleet
    sources: Sources
    subscriptions: Subscriptions
    faults: Faults
    requests: RequestWatch
    clock_control: ClockControl
    history: HistoryKeeper

    @property
    def rules(self) -> Rules:
        return self.basis.rules

    def new_context(self, by: Actor, seed: str | None = None) -> AzureContext:
        """What one use case of the control plane takes, made before its transaction."""
        return AzureContext(
            by=by,
            rules=self.basis.rules,
            ids=Ids(seed or self.basis.new_id()),
            address_range=self.basis.address_range,
        )
