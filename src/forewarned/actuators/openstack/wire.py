"""Keystone's and Nova's JSON, as far as it is used."""

from msgspec import Struct, field

# --- Keystone ------------------------------------------------------------------------------------


class Endpoint(Struct, frozen=True):
    interface: str
    url: str
    region: str | None = None


class CatalogService(Struct, frozen=True):
    type: str
    endpoints: tuple[Endpoint, ...] = ()


class Token(Struct, frozen=True):
    catalog: tuple[CatalogService, ...] = ()


class TokenBody(Struct, frozen=True):
    token: Token


# --- Nova ----------------------------------------------------------------------------------------


class Address(Struct, frozen=True):
    addr: str
    kind: str = field(default="fixed", name="OS-EXT-IPS:type")
    """`fixed`: a port of the VM has it. `floating`: a router translates it."""


class Flavor(Struct, frozen=True):
    original_name: str = ""


class Server(Struct, frozen=True):
    id: str
    name: str
    status: str = ""
    metadata: dict[str, str] = {}
    addresses: dict[str, tuple[Address, ...]] = {}
    """By network."""
    flavor: Flavor = Flavor()
    progress: int | None = None
    """Percent."""
    host: str | None = field(default=None, name="OS-EXT-SRV-ATTR:host")
    """The name of the compute service; None where it has not been scheduled."""
    zone: str | None = field(default=None, name="OS-EXT-AZ:availability_zone")
    vm_state: str = field(default="", name="OS-EXT-STS:vm_state")
    task_state: str | None = field(default=None, name="OS-EXT-STS:task_state")
    """What Nova is doing to it; None for nothing."""
    power_state: int = field(default=0, name="OS-EXT-STS:power_state")


class Link(Struct, frozen=True):
    rel: str
    href: str


class ServerBody(Struct, frozen=True):
    server: Server


class ServersBody(Struct, frozen=True):
    servers: tuple[Server, ...]
    servers_links: tuple[Link, ...] = ()
    """Has `next` where this is not all of it."""


class InstanceAction(Struct, frozen=True):
    """One thing that was done to a VM, as Nova recorded it."""

    action: str
    request_id: str
    message: str | None = None
    """`Error` if it failed."""


class InstanceActionsBody(Struct, frozen=True):
    instance_actions: tuple[InstanceAction, ...] = field(name="instanceActions")
    """The newest first."""


class ActionEvent(Struct, frozen=True):
    """A step of an action, in one of Nova's services."""

    event: str
    result: str | None = None
    """None while it has not ended; `Error`, or `Success`."""
    details: str | None = None


class ActionDetails(Struct, frozen=True):
    message: str | None = None
    events: tuple[ActionEvent, ...] = ()


class ActionBody(Struct, frozen=True):
    instance_action: ActionDetails = field(name="instanceAction")


class MigrationRecord(Struct, frozen=True):
    id: int
    migration_type: str
    """`live-migration`, `migration` for a cold one, `resize`, `evacuation`."""
    status: str
    source_compute: str | None = None
    dest_compute: str | None = None


class MigrationsBody(Struct, frozen=True):
    migrations: tuple[MigrationRecord, ...]


class ComputeService(Struct, frozen=True):
    id: str
    host: str
    status: str
    """`enabled` or `disabled`, which is an operator's choice."""
    state: str
    """`up` or `down`, as the service reports."""
    zone: str = ""
    disabled_reason: str | None = None


class ServicesBody(Struct, frozen=True):
    services: tuple[ComputeService, ...]


class ServerGroup(Struct, frozen=True):
    id: str
    name: str
    policy: str
    members: tuple[str, ...] = ()
    """Ids of servers."""


class ServerGroupsBody(Struct, frozen=True):
    server_groups: tuple[ServerGroup, ...]
