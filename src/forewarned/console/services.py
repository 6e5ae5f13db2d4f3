"""What the console calls. The composition puts it together; nothing here knows a real adapter."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from forewarned.console.actions import Actions
from forewarned.console.sessions import Sessions
from forewarned.core.model import Document
from forewarned.core.rules import Rules
from forewarned.service.clock_control import ClockControl
from forewarned.service.engine import Engine
from forewarned.service.events.approval import Approvals
from forewarned.service.events.explain import Explainer
from forewarned.service.fleet.apply import Fleet
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.lifecycle.actuation import Actuation
from forewarned.service.records import About


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleServices:
    engine: Engine
    approvals: Approvals
    actuation: Actuation
    explainer: Explainer
    fleet: Fleet
    reading: Activation
    clock_control: ClockControl
    actions: Actions
    rehearsed: Actions
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
