"""The hosts of an emulator: nothing is really moved, so a Redeploy invents where VMs are then."""

from collections.abc import Collection, Mapping
from itertools import count
from typing import Final

from forewarned.core.ids import HostName, ResourceName
from forewarned.service.ports import Transaction

_USED: Final = "spare hosts used"


def spare_hosts(
    tx: Transaction, names: Collection[ResourceName]
) -> Mapping[ResourceName, HostName]:
    """A new host for each VM, so that no host gets VMs of two update domains."""
    numbers = count(int(tx.note(_USED) or 0) + 1)
    hosts = {}
    for name in names:
        # A fleet file may have declared a host of such a name.
        number = next(n for n in numbers if not tx.scopes_on(_spare_host(n)))
        hosts[name] = _spare_host(number)
        tx.put_note(_USED, str(number))
    return hosts


def _spare_host(number: int) -> HostName:
    return HostName(f"spare-{number:02}")
