"""What the listener calls. Bootstrap puts it together; nothing here knows a real adapter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from notbefore.control.access import Access
from notbefore.control.changes import Changes
from notbefore.control.event_waits import EventWaits
from notbefore.control.metrics import Metrics
from notbefore.core.rules import Rules
from notbefore.service.approving import Approving
from notbefore.service.carrying import Carrying
from notbefore.service.deciding import Decider
from notbefore.service.explaining import Explaining
from notbefore.service.faults import Faults
from notbefore.service.fleet import Fleet
from notbefore.service.identities import Principal
from notbefore.service.reset import Reset
from notbefore.service.scheduling import Scheduling
from notbefore.service.timekeeping import Timekeeping


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    decider: Decider
    scheduling: Scheduling
    approving: Approving
    carrying: Carrying
    explaining: Explaining
    fleet: Fleet
    timekeeping: Timekeeping
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
