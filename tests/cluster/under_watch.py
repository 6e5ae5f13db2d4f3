"""What every fault test watches besides its own question, and all of them alike.

VMs poll the nodes and remember every incarnation that they were shown. A few clients schedule,
approve and cancel at all nodes, and keep a ledger of what was confirmed. They have VMs of their
own, so a test knows what is in the documents of its VMs.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.cluster.incarnation_watch import IncarnationWatch
from tests.cluster.ledger import Ask
from tests.cluster.nodes import Node
from tests.cluster.traffic import PATIENCE, Traffic

LOAD: Final = {f"load-{number}": f"127.12.0.{number}" for number in range(1, 5)}
"""VMs that the nodes' fleet must have, with their addresses."""
_CHANGES: Final = 4
"""Confirmed ones before a fault, and after it."""
_IDS: Final = "SELECT id FROM events"
_OWN_IDS: Final = f"{_IDS} WHERE scope_id LIKE 'vm/load-%'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    traffic: Traffic
    ask: Ask
    others: frozenset[str]
    """Ids of events that were there before."""

    def check(self) -> None:
        """What was confirmed is in the store, and has happened once. I1, I5, I14, I23."""
        self.traffic.check(self._own)

    # Any: rows of a query, as the ledger asks it.
    def _own(self, query: str) -> list[Any]:
        """Rows about events of this load. A test's own may have been changed by SQL."""
        own = {event_id for (event_id,) in self.ask(_OWN_IDS)} - self.others
        return [row for row in self.ask(query) if row[0] in own]


@contextlib.contextmanager
def under_load(nodes: Sequence[Node], ask: Ask, *, patience: float = PATIENCE) -> Iterator[Load]:
    """Changes are confirmed before the block and after it; all are checked in the end.

    `patience` is how many seconds a client asks for the same thing.
    VMs must have been polling, as events of those that don't start at once.
    """
    others = frozenset(event_id for (event_id,) in ask(_IDS))
    load = Load(traffic=Traffic(nodes, LOAD, threads=2, patience=patience), ask=ask, others=others)
    with load.traffic.running() as traffic:
        traffic.wait_for(_CHANGES)
        yield load
        traffic.wait_for(_CHANGES)
    load.check()


@contextlib.contextmanager
def polled(
    nodes: Sequence[Node], vms: Mapping[str, str], *, interval: float = 0.3
) -> Iterator[IncarnationWatch]:
    """These VMs and those of the load poll. Fails in the end if an incarnation has fallen: I7."""
    where = {node.name: node.metadata for node in nodes}
    with IncarnationWatch(where, {**vms, **LOAD}, interval=interval) as watch:
        watch.wait_for_rounds()
        yield watch
        watch.wait_for_rounds()


@contextlib.contextmanager
def under_watch(
    nodes: Sequence[Node], ask: Ask, vms: Mapping[str, str], *, interval: float = 0.3
) -> Iterator[IncarnationWatch]:
    """Both, for faults that may lose nothing. At least one node has to run by now."""
    with polled(nodes, vms, interval=interval) as watch, under_load(nodes, ask):
        yield watch
