"""The control API's answers, as far as the commands print them.

Fields this version has never heard of are ignored: an older CLI must work with a newer server.
"""

from datetime import datetime

import msgspec


class Approval(msgspec.Struct, frozen=True):
    by: str
    at: datetime
    by_policy: bool = False


class Event(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    type: str
    status: str
    source: str
    scope: str
    resources: tuple[str, ...]
    created_at: datetime
    not_before: datetime | None = None
    started_at: datetime | None = None
    start_cause: str | None = None
    ended_at: datetime | None = None
    end_reason: str = ""
    description: str = ""
    duration: str | None = None
    announced: bool = True
    approval: Approval | None = None
    maintenance: str | None = None


class Events(msgspec.Struct, frozen=True):
    events: tuple[Event, ...]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of history."""

    id: int
    at: datetime
    actor: str
    action: str
    scope: str
    address: str = ""
    event_id: str | None = None
    event_type: str | None = None
    resources: tuple[str, ...] = ()
    cause: str = ""


class History(msgspec.Struct, frozen=True):
    history: tuple[Row, ...]
    next: int | None = None


class Sibling(msgspec.Struct, frozen=True, kw_only=True):
    """Another open event of the same maintenance of a host."""

    event_id: str
    type: str
    status: str
    scope: str
    resources: tuple[str, ...]
    ready: bool = True


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    event: Event
    now: datetime
    why: str
    next_step: str
    waits_for: tuple[str, ...] = ()
    waits_for_events: tuple[str, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    history: tuple[Row, ...] = ()


class Clock(msgspec.Struct, frozen=True):
    now: datetime
    speed: float
    state: str


class Vm(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    address: str
    host: str
    state: str
    update_domain: int = 0
    fault_domain: int = 0
    priority: str = ""
    zone: str = ""


class Maintenance(msgspec.Struct, frozen=True):
    type: str
    remaining_update_domains: tuple[int, ...] = ()


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: str
    active: bool
    incarnation: int
    vms: tuple[Vm, ...]
    last_read_at: datetime | None = None
    last_read_by: str | None = None
    maintenance: Maintenance | None = None
    open_events: int = 0


class Fleet(msgspec.Struct, frozen=True):
    scopes: tuple[Scope, ...]


class Host(msgspec.Struct, frozen=True):
    name: str
    vms: tuple[str, ...] = ()


class Applied(msgspec.Struct, frozen=True):
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int


class Health(msgspec.Struct, frozen=True):
    mode: str
    metadata: str


class SettingValue(msgspec.Struct, frozen=True):
    name: str
    value: str
    origin: str


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is reached, and what it keeps."""

    metadata: str
    arm: str | None = None
    """None where it has no such listener."""
    ca: str | None = None
    """The file of the certificate to trust; None where there is no `arm`."""
    data: str


class Authority(msgspec.Struct, frozen=True, kw_only=True):
    """The certificate that HTTPS clients have to trust."""

    path: str
    pem: str


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What a client needs in its environment, and is to run first."""

    variables: dict[str, str]
    commands: tuple[str, ...] = ()


class Known(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person or a program that may steer the server."""

    name: str
    role: str
    client_id: str = ""
    expires_at: datetime | None = None
    """None for one that holds until it is revoked."""
    is_expired: bool = False


class NewToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    role: str
    token: str
    expires_at: datetime | None = None


class NewServicePrincipal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    role: str
    tenant_id: str
    client_id: str
    client_secret: str
    expires_at: datetime | None = None


class RestoredStore(msgspec.Struct, frozen=True, kw_only=True):
    path: str


class MadeFault(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong because somebody wants it to."""

    id: str
    kind: str
    used: int = 0
    status: int | None = None
    retry_after: str | None = None
    delay: str | None = None
    times: int | None = None
    vm: str | None = None
    method: str | None = None


class MadeFaults(msgspec.Struct, frozen=True):
    faults: tuple[MadeFault, ...]


class ResetDone(msgspec.Struct, frozen=True, kw_only=True):
    events: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    faults: int


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the stream of changes."""

    at: datetime
    action: str
    scope: str
    event: Event | None = None
    resources: tuple[str, ...] = ()
    cause: str = ""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first message of that stream: what is open."""

    now: datetime
    events: tuple[Event, ...]


class Farewell(msgspec.Struct, frozen=True):
    """The last one, where the server ends it."""

    message: str


class SignedOut(msgspec.Struct, frozen=True):
    """The last one to a watcher whose token was good when it began."""

    message: str


class Fault(msgspec.Struct, frozen=True):
    code: str
    message: str
    field: str | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    error: Fault
