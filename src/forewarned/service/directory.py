"""The callers: VMs by address and by name, in memory.

There may be a million, so nothing is stored twice: a name leads to the VM's address, and an address
to the one Caller. Invariant: an address leads to the VM it was last bound to.
"""

import sys
from collections.abc import Iterable

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.service.records import Binding, Caller, Commit, Place, ScopePlaces


class MemoryDirectory:
    def __init__(self) -> None:
        self._by_address: dict[str, Caller] = {}
        self._addresses: dict[str, str] = {}
        """By folded name, for VMs that have an address."""
        self._unreachable: dict[str, Caller] = {}
        """By folded name: VMs without an address, or whose address went to another VM."""
        self._first: ResourceName | None = None
        self.generation = 0

    def by_address(self, address: str) -> Caller | None:
        return self._by_address.get(address)

    def by_name(self, name: str) -> Caller | None:
        folded = name.casefold()
        address = self._addresses.get(folded)
        return self._unreachable.get(folded) if address is None else self._by_address[address]

    def first(self) -> Caller | None:
        return None if self._first is None else self.by_name(self._first)

    def bind(self, binding: Binding) -> None:
        self._put(Place.of(binding))

    def hear(self, commit: Commit) -> None:
        if commit.bound or commit.unbound:
            self.put_first(commit.first_vm)
            self.move(map(Place.of, commit.bound), gone=commit.unbound)

    def put_first(self, name: ResourceName | None) -> None:
        """Set the fleet's first VM, which may be added only later."""
        self._first = name
        self.generation += 1

    def move(self, places: Iterable[Place], *, gone: Iterable[ResourceName] = ()) -> None:
        """Add VMs or move them to these places, and remove those that are gone."""
        for name in gone:
            self._forget(name.casefold())
        for place in places:
            self._put(place)
        self.generation += 1

    def settle(self, parts: Iterable[ScopePlaces]) -> None:
        """Add VMs or move them to these places: as `move`, in half the time, for very many."""
        for scope_id, names, addresses in parts:
            shared = ScopeId(sys.intern(scope_id))
            for name, address in zip(names, addresses, strict=True):
                folded = _folded(name)
                if not address or folded in self._addresses:
                    self._put(Place(name, shared, address))
                    continue
                # Nearly always the VM is new, and then there is nothing else to do.
                self._addresses[folded] = address
                caller = Caller(name, shared)
                former = self._by_address.setdefault(address, caller)
                if former is not caller:
                    self._lose_address(former)
                    self._by_address[address] = caller
                if self._unreachable:
                    self._unreachable.pop(folded, None)
        self.generation += 1

    def take_over(self, other: "MemoryDirectory") -> None:
        """Replace everything by what the other has. The other must not be used any more."""
        self._by_address = other._by_address  # noqa: SLF001  # one of the same class
        self._addresses = other._addresses  # noqa: SLF001
        self._unreachable = other._unreachable  # noqa: SLF001
        self._first = other._first  # noqa: SLF001
        self.generation += 1

    def _put(self, place: Place) -> None:
        name, scope_id, address = place
        folded = _folded(name)
        self._forget(folded)
        # Each VM of a scope comes with its own copy of the scope's id: share one.
        caller = Caller(name, ScopeId(sys.intern(scope_id)))
        if not address:
            self._unreachable[folded] = caller
            return
        former = self._by_address.get(address)
        if former is not None:
            self._lose_address(former)
        self._by_address[address] = caller
        self._addresses[folded] = address

    def _lose_address(self, caller: Caller) -> None:
        folded = _folded(caller.name)
        del self._addresses[folded]
        self._unreachable[folded] = caller

    def _forget(self, folded: str) -> None:
        address = self._addresses.pop(folded, None)
        if address is None:
            self._unreachable.pop(folded, None)
        else:
            del self._by_address[address]


def _folded(name: str) -> str:
    """The name itself if it is folded already: most are, and a copy would double the memory."""
    folded = name.casefold()
    return name if folded == name else folded
