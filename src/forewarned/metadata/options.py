"""The options of the metadata listener. In a server they come from its settings."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

LONGEST_FIRST_CALL: Final = timedelta(seconds=120)
"""Azure documents up to two minutes for the call that switches scheduled events on."""
LONGEST_POLL: Final = timedelta(minutes=5)
"""How long a long poll may wait: long enough that an idle VM costs nothing, and short enough for
proxies and clients in between."""


class Balancing(StrEnum):
    """How VMs' connections come to the nodes that share a store."""

    STICKY = "sticky"
    """A VM's go to the same node, until that one is gone."""
    ANY = "any"
    """Each may go to another."""


class EmulatorAccess(StrEnum):
    """Which callers of an emulator may be any VM."""

    LOOPBACK = "loopback"
    """Those on the emulator's own machine."""
    NETWORK = "network"
    """All that reach it: containers beside it, and whatever else is on their network."""


class Identification(StrEnum):
    """What says which VM a connection comes from."""

    ADDRESS = "address"
    """The peer's IP address, which the network has to vouch for."""
    PORT_MARKS = "port-marks"
    """The mark that the hypervisor puts on packets of a VM's port; without one, the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    host: str = "127.0.0.1"
    port: int = 8169
    """0 for any free port."""
    emulator: bool = False
    """Whether callers may be any VM, by the path prefix `/vm/{name}` or by default."""
    emulator_access: EmulatorAccess = EmulatorAccess.LOOPBACK
    default_vm: str | None = None
    """The VM of callers whose address no VM has, in an emulator; None for the fleet's first."""
    identification: Identification = Identification.ADDRESS
    rate_limit: float | None = 5.0
    """Requests a second for each VM, bursts of one second's worth; None for no limit."""
    first_call_delay: timedelta = timedelta(0)
    """How long the read that activates a scope waits for its answer, on the server's clock."""
    strict_forwarding: bool = False
    """Whether Forwarded, Via and X-Real-IP are refused like X-Forwarded-For."""
    hosts: frozenset[str] = frozenset()
    """Names the Host header may carry besides localhost and IP addresses, in lower case."""
    # Below the usual 65,536 open files of a service, with room for the store and the console.
    max_connections: int = 20_000
    # Agents, SDKs, a person or two and their retries: a VM that needs more has a leak.
    max_connections_per_vm: int = 128
    header_deadline: timedelta = timedelta(seconds=2)
    body_deadline: timedelta = timedelta(seconds=5)
    idle_timeout: timedelta = timedelta(seconds=120)
    stop_grace: timedelta = timedelta(seconds=5)
    """How long answers under way may take once the server is stopping."""
    max_header_bytes: int = 8 * 1024
    max_body_bytes: int = 64 * 1024

    def __post_init__(self) -> None:
        if not timedelta(0) <= self.first_call_delay <= LONGEST_FIRST_CALL:
            raise ValueError(
                f"a first-call delay of {self.first_call_delay} is not between 0 s and 120 s"
            )
        if self.rate_limit is not None and self.rate_limit <= 0:
            raise ValueError(
                f"a rate limit of {self.rate_limit:g} requests a second is not above 0"
            )
