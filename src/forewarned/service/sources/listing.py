"""What a platform says about its VMs, as an actuator reports it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

LONGEST_LISTING: Final = timedelta(minutes=2)
"""How long an actuator waits for its platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVm:
    """Known by its UUID: another name or host is the same VM, and another UUID another VM."""

    vm_id: str
    name: str
    host: str
    address: str = ""
    """Empty if the platform gives none, and never what the guest itself says."""
    port_mark: int | None = None
    """What its host marks with all that comes from its port; None if the operator says none."""
    interface: str = ""
    """Its port on the host's bridge; empty if it has no lasting name."""
    availability_set: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    vms: tuple[ListedVm, ...]
    silent: Mapping[str, str] = field(default_factory=dict)
    """Hosts that did not answer, each with the reason."""

    @property
    def is_complete(self) -> bool:
        return not self.silent
