"""What the listener calls. Bootstrap puts it together; nothing here knows a real adapter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from forewarned.control.http.access import Access
from forewarned.control.v1.changes import Changes
from forewarned.control.v1.event_waits import EventWaits
from forewarned.control.v1.metrics import Metrics
from forewarned.core.rules import Rules
from forewarned.security.identities import Principal
from forewarned.service.clock_control import ClockControl
from forewarned.service.engine import Engine
from forewarned.service.events.approval import Approvals
from forewarned.service.events.explain import Explainer
from forewarned.service.events.schedule import Scheduler
from forewarned.service.faults import Faults
from forewarned.service.fleet.apply import Fleet
from forewarned.service.lifecycle.actuation import Actuation
from forewarned.service.reset import Reset


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    engine: Engine
    scheduler: Scheduler
    approvals: Approvals
    actuation: Actuation
    explainer: Explainer
    fleet: Fleet
    clock_control: ClockControl
    reset: Reset
    rules: Rules
    mode: str
    metadata_url: str
    settings_listing: Sequence[tuple[str, str, str]]
    """Name, value and origin of each setting."""
    allowed_hosts: frozenset[str]
    """Names this listener goes by, in lower case, besides localhost and IP addresses."""
    access: Access | None = None
    """Who may do what; None where whoever reaches the listener may do everything."""
    session_holder: Callable[[HTTPConnection], Principal | None] = lambda _: None
    """Who is signed in at the console in the browser that asks; None for nobody."""
    arm_url: str | None = None
    """Where ARM is served; None where it is not."""
    ca_file: str | None = None
    """The certificate that its clients are to trust."""
    data_folder: str = ""
    metrics: Metrics = field(default_factory=Metrics)
    take_counts: Callable[[], Mapping[str, int]] = dict
    """What the metadata listeners have counted since this was last called."""
    faults: Faults = field(default_factory=Faults)
    changes: Changes = field(default_factory=Changes)
    waits: EventWaits = field(default_factory=EventWaits)

    def close(self) -> None:
        """To be called first where the server stops: these requests don't end by themselves."""
        self.changes.close()
        self.waits.close()
