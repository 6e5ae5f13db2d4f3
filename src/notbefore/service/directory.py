"""Who is calling: VMs by address and by name, in memory."""

from notbefore.core.ids import ResourceName
from notbefore.service.ports import Binding, Caller, Commit


class MemoryDirectory:
    def __init__(self) -> None:
        self._by_address: dict[str, Caller] = {}
        self._by_name: dict[str, Caller] = {}
        self._addresses: dict[ResourceName, str] = {}
        self._generation = 0

    @property
    def generation(self) -> int:
        return self._generation

    def by_address(self, address: str) -> Caller | None:
        return self._by_address.get(address)

    def by_name(self, name: str) -> Caller | None:
        return self._by_name.get(name.casefold())

    def bind(self, binding: Binding) -> None:
        self._forget(binding.name)
        caller = Caller(name=binding.name, scope_id=binding.scope_id)
        self._by_name[binding.name.casefold()] = caller
        # A VM without an address can be reached by name only.
        if binding.address:
            self._by_address[binding.address] = caller
            self._addresses[binding.name] = binding.address

    def hear(self, commit: Commit) -> None:
        if not commit.bound and not commit.unbound:
            return
        for name in commit.unbound:
            self._forget(name)
        for binding in commit.bound:
            self.bind(binding)
        self._generation += 1

    def _forget(self, name: ResourceName) -> None:
        # The address may have been given to another VM since: that one keeps it.
        caller = self._by_name.pop(name.casefold(), None)
        address = self._addresses.pop(name, None)
        if address is not None and self._by_address.get(address) == caller:
            del self._by_address[address]
