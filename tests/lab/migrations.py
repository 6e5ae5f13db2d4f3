"""How often the libvirts of the lab have taken a guest over from another host.

Resets can't be counted so: firmware may reset the machine once more before it boots.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator

import libvirt

from forewarned.actuators.libvirt.connections.event_thread import event_thread
from tools.lab.lab import Lab


@contextlib.contextmanager
def counted_migrations(lab: Lab) -> "Iterator[Counter[str]]":
    """From now on, by the name of the guest."""
    counted: Counter[str] = Counter()

    def hear(
        _: libvirt.virConnect, domain: libvirt.virDomain, event: int, detail: int, __: None
    ) -> None:
        arrived = (libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_STARTED_MIGRATED)
        if (event, detail) == arrived:
            counted[domain.name()] += 1

    with event_thread(), contextlib.ExitStack() as stack:
        for host in lab.hosts:
            connection = stack.enter_context(lab.libvirt(host))
            number = connection.domainEventRegisterAny(
                None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, hear, None
            )
            stack.callback(connection.domainEventDeregisterAny, number)
        yield counted
