"""Who is calling: VMs by address and by name, in memory."""

from collections.abc import Iterable

from notbefore.core.ids import ResourceName
from notbefore.service.ports import Binding, Caller, Commit, Place


class MemoryDirectory:
    def __init__(self) -> None:
        self._by_address: dict[str, Caller] = {}
        self._by_name: dict[str, Caller] = {}
        self._addresses: dict[ResourceName, str] = {}
        self.generation = 0

    def by_address(self, address: str) -> Caller | None:
        return self._by_address.get(address)

    def by_name(self, name: str) -> Caller | None:
        return self._by_name.get(name.casefold())

    def bind(self, binding: Binding) -> None:
        self._put(Place.of(binding))

    def hear(self, commit: Commit) -> None:
        if commit.bound or commit.unbound:
            self.move(map(Place.of, commit.bound), gone=commit.unbound)

    def move(self, places: Iterable[Place], *, gone: Iterable[ResourceName] = ()) -> None:
        """Know VMs by these places from now on, and those that are gone no more."""
        for name in gone:
            self._forget(name)
        for place in places:
            self._put(place)
        self.generation += 1

    def take_over(self, other: "MemoryDirectory") -> None:
        """Know at once what the other knows, and nothing else; the other is not to be used more."""
        self._by_address = other._by_address  # noqa: SLF001  # one of the same class
        self._by_name = other._by_name  # noqa: SLF001
        self._addresses = other._addresses  # noqa: SLF001
        self.generation += 1

    def _put(self, place: Place) -> None:
        name, scope_id, address = place
        self._forget(name)
        caller = Caller(name=name, scope_id=scope_id)
        self._by_name[name.casefold()] = caller
        # A VM without an address can be reached by name only.
        if address:
            self._by_address[address] = caller
            self._addresses[name] = address

    def _forget(self, name: ResourceName) -> None:
        # The address may have been given to another VM since: that one keeps it.
        caller = self._by_name.pop(name.casefold(), None)
        address = self._addresses.pop(name, None)
        if address is not None and self._by_address.get(address) == caller:
            del self._by_address[address]
