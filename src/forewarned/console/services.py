"""What the console calls: the use cases, and what is its own."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from forewarned.console.actions import Actions
from forewarned.console.sessions import Sessions
from forewarned.core.model import Document
from forewarned.service.engine import Engine
from forewarned.service.nodes import Nodes
from forewarned.service.records import About
from forewarned.service.use_cases import UseCases


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleServices:
    use_cases: UseCases
    actions: Actions
    rehearsed: Actions
    """The same, but nothing of it is kept."""
    is_emulator: bool
    metadata_url: str
    subscription_id: str
    """Where scale sets that are made here belong."""
    event_versions: tuple[str, ...]
    """The api-versions a document is shown in, oldest first."""
    instance_version: str
    show_document: Callable[[Document, str], bytes]
    """The JSON that VMs get for a document in an api-version."""
    show_instance: Callable[[About, str], bytes]
    """The JSON that a VM gets about itself."""
    nodes: Nodes
    sessions: Sessions | None = None
    """None where visitors don't sign in, and may do everything."""
    next_timer: Callable[[], datetime | None] = lambda: None
    """When the next timer of the server's clock is due; None without one, or in real time."""

    @property
    def engine(self) -> Engine:
        return self.use_cases.engine
