"""What the use cases of the control plane take besides a transaction.

Invariant: a transaction function that is run again makes the same ids. So the seed is drawn before
the function, and an id follows from the seed and from what it is for; nothing is counted.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from forewarned.core.ids import EventId
from forewarned.core.model import Actor, EventType
from forewarned.core.rules import Rules
from forewarned.service.fleet.declaration import Network
from forewarned.service.fleet.placement import guid

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of everything that one use case makes."""

    seed: str
    """Random, and different each time a use case is called."""

    def event(self, type_: EventType, vm: str) -> EventId:
        return EventId(self._guid("event", type_, vm).upper())

    def vm(self, name: str) -> str:
        return self._guid("vm", name)

    def operation(self, path: str, action: str) -> str:
        return self._guid("operation", path, action)

    def _guid(self, *purpose: str) -> str:
        return guid("\n".join((self.seed, *purpose)).casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureContext:
    by: Actor
    rules: Rules
    ids: Ids
    address_range: Network
    """Where new VMs get their addresses."""
    location: str = "local"
    """Of resources for which neither the client nor their resource group says one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[V]):
    view: V
    """Of the VM, the set or the resource group, as the use case left it."""
    created: bool = False
    event_ids: tuple[EventId, ...] = ()
    """What the operation waits for."""
