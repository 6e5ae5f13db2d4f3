"""What use cases stand on in tests: a basis with ids that count, and a store in memory."""

import ipaddress
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import count

from forewarned.clock import wall_clock
from forewarned.core import lifecycle
from forewarned.core.ids import EventId
from forewarned.core.model import Resource
from forewarned.core.rules import Rules
from forewarned.core.tasks import ActuatorOf
from forewarned.service.fleet.declaration import Network
from forewarned.service.lifecycle.ports import Clock
from forewarned.service.use_cases import Basis
from forewarned.storage import SqliteStore
from tests.builders import event_id


def a_basis(
    rules: Rules = Rules(),  # noqa: B008  # frozen
    *,
    new_event_id: Callable[[], EventId] | None = None,
    address_range: Network = ipaddress.IPv4Network("10.0.1.0/24"),  # noqa: B008  # as above
) -> Basis:
    numbers, ids = count(1), count(1)
    return Basis(
        rules=rules,
        new_event_id=new_event_id or (lambda: event_id(next(numbers))),
        new_id=lambda: f"00000000-0000-0000-0000-{next(ids):012}",
        address_range=address_range,
    )


def own_actuator(vm: Resource) -> str:
    """What the VM itself says, as if no setting did."""
    return vm.actuator


def a_store(
    clock: Clock,
    rules: Rules = Rules(),  # noqa: B008  # frozen
    *,
    actuator_of: ActuatorOf = own_actuator,
    wall_clock: Callable[[], datetime] = wall_clock,
) -> SqliteStore:
    """In memory. To be opened."""
    next_wake = partial(lifecycle.next_wake, rules=rules)
    return SqliteStore(
        None, clock, next_wake=next_wake, actuator_of=actuator_of, wall_clock=wall_clock
    )
