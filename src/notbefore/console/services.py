"""What the console calls. The composition puts it together; nothing here knows a real adapter."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from notbefore.console.deeds import Deeds
from notbefore.console.sessions import Sessions
from notbefore.core.model import Document
from notbefore.core.rules import Rules
from notbefore.service.approving import Approving
from notbefore.service.carrying import Carrying
from notbefore.service.deciding import Decider
from notbefore.service.explaining import Explaining
from notbefore.service.fleet import Fleet
from notbefore.service.ports import About
from notbefore.service.reading import Reading
from notbefore.service.timekeeping import Timekeeping


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleServices:
    decider: Decider
    approving: Approving
    carrying: Carrying
    explaining: Explaining
    fleet: Fleet
    reading: Reading
    timekeeping: Timekeeping
    deeds: Deeds
    rehearsed: Deeds
    """The same, but nothing of it is kept."""
    rules: Rules
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
    sessions: Sessions | None = None
    """None where nobody has to sign in: whoever reaches the console may do everything."""
    next_timer: Callable[[], datetime | None] = lambda: None
    """When the server's clock next calls somebody; None where nobody waits or time is real."""
