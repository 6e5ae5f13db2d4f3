"""What use cases stand on in tests: a basis with ids that count, and a store in memory."""

import ipaddress
from collections.abc import Callable
from functools import partial
from itertools import count

from forewarned.core import lifecycle
from forewarned.core.ids import EventId
from forewarned.core.rules import Rules
from forewarned.service.fleet.declaration import Network
from forewarned.service.ports import Clock
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


def a_store(clock: Clock, rules: Rules = Rules()) -> SqliteStore:  # noqa: B008  # frozen
    """In memory. To be opened."""
    return SqliteStore(None, clock, next_wake=partial(lifecycle.next_wake, rules=rules))
