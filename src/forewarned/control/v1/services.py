"""What `/v1` calls: the use cases, and what is this listener's own."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from starlette.requests import HTTPConnection

from forewarned.control.http.access import Access
from forewarned.control.v1.changes import Changes
from forewarned.control.v1.event_waits import EventWaits
from forewarned.control.v1.metrics import Metrics
from forewarned.control.v1.tasks.waits import TaskWaits
from forewarned.security.identities import Principal
from forewarned.service.engine import Engine
from forewarned.service.fleet.reset import Reset
from forewarned.service.nodes import Nodes
from forewarned.service.use_cases import UseCases


async def no_session(_: HTTPConnection) -> Principal | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    use_cases: UseCases
    reset: Reset
    nodes: Nodes
    mode: str
    metadata_url: str
    settings_listing: Sequence[tuple[str, str, str]]
    """Name, value and origin of each setting."""
    allowed_hosts: frozenset[str]
    """Names this listener goes by, in lower case, besides localhost and IP addresses."""
    access: Access | None = None
    """Who may do what; None where every caller may do everything."""
    session_holder: Callable[[HTTPConnection], Awaitable[Principal | None]] = no_session
    """Who is signed in at the console in the browser that calls; None if no one is."""
    arm_url: str | None = None
    """Where ARM is served; None where it is not."""
    ca_file: str | None = None
    """The certificate that its clients are to trust."""
    certificate_expires_at: Callable[[], datetime | None] = lambda: None
    """When the certificate that listeners present does; None where they present none."""
    data_folder: str = ""
    metrics: Metrics = field(default_factory=Metrics)
    take_counts: Callable[[], Mapping[str, int]] = dict
    """What the metadata listener has counted since this was last called."""
    changes: Changes = field(default_factory=Changes)
    request_streams: Changes = field(default_factory=Changes)
    """The streams of those who watch requests."""
    waits: EventWaits = field(default_factory=EventWaits)
    task_waits: TaskWaits = field(default_factory=TaskWaits)

    @property
    def engine(self) -> Engine:
        return self.use_cases.engine

    def close(self) -> None:
        """To be called first where the server stops: these requests don't end by themselves."""
        self.changes.close()
        self.request_streams.close()
        self.waits.close()
        self.task_waits.close()
