"""What the agent's listener answers to `/status`, with every JSON name in it.

Instants are RFC 3339 in UTC, spans are strings like `14m59s`, null is "unknown" or "none". Fields
that a reader has never heard of are ignored, so that either side may be the newer one.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec


class Stage(StrEnum):
    """How far the agent has come with an event."""

    PREPARING = "preparing"
    READY = "ready"
    """Every required step is done and none vetoes; the event has not started."""
    NOT_PREPARED = "not prepared"
    """The steps have run, but a required one was not done, or one vetoed."""
    STARTED = "started"
    RESTORING = "restoring"
    """The event is over, or was canceled: undo and recover hooks run."""
    FINISHED = "finished"


BEFORE_START: Final = frozenset({Stage.PREPARING, Stage.READY, Stage.NOT_PREPARED})


class StepStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one hook, in the order that the agent takes them."""

    phase: str
    """prepare, undo or recover."""
    step: str
    state: str
    """`to come`, `running`, or what came of it: done, failed, timed_out, vetoed, skipped, …"""
    detail: str = ""
    """For people: what it does, while it is to come; what came of it, once it has run."""
    took: str | None = None
    """None if it has not run, or when it ended is not known."""
    limit: str | None = None
    """How long it may take; None unless it is running."""
    required: bool = True


class EventStatus(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    type: str
    source: str
    resources: tuple[str, ...]
    stage: Stage
    rule: str
    """Empty where no rule has matched, and nothing is done."""
    waits_for: str
    """What has to happen before the agent goes on; empty once finished."""
    description: str = ""
    duration: str | None = None
    not_before: datetime | None = None
    """None once it has started."""
    time_left: str | None = None
    """Until NotBefore."""
    approve: str = ""
    """The plan's policy."""
    leader: str = ""
    approved: bool = False
    """Whether this agent has approved it."""
    not_approved_because: str | None = None
    """What keeps this agent from approving; None where nothing does, or it need not."""
    came_back: bool = False
    """Whether the VM has booted since the event was first seen."""
    not_put_back: tuple[str, ...] = ()
    """Steps whose undo has failed or was interrupted. It does not run again."""
    reappeared: bool = False
    """Whether the document shows it again after it was gone. The agent leaves it alone."""
    steps: tuple[StepStatus, ...] = ()


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    now: datetime
    """By this VM's clock, as `started_at` is."""
    version: str
    resource: str
    """This VM's name; empty while it is not known."""
    endpoint: str
    """Where events are read; empty while it is not known."""
    started_at: datetime
    healthy: bool
    ready: bool
    why: str = ""
    """Why it is not healthy, or not ready."""
    warnings: tuple[str, ...] = ()
    """What an operator has to do something about."""
    service_now: datetime | None = None
    """By the service's clock, as `document_at` and every NotBefore are; None before the first
    document. An emulator's clock may be days away from this VM's. It is counted on in real time
    from the last document, so for a paused or fast clock it is only approximate."""
    document_at: datetime | None = None
    """When the last good document was sent, by the service's clock; None for never."""
    document_age: str | None = None
    """How long ago it was read, whatever the clocks say."""
    incarnation: int | None = None
    events: tuple[EventStatus, ...] = ()
    """The oldest first; finished ones too, as long as they are remembered."""
