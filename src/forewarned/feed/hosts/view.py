"""What the poller of one hypervisor may know: the VMs that run there, and their scopes' documents.

Invariant: nothing of a VM on another host is told, and nothing is taken in that VM's name.
"""

from collections.abc import Iterator

from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Scope
from forewarned.feed.protocol import Committed
from forewarned.service.ports import Snapshot
from forewarned.service.records import Caller, Commit, PageContent, Place, ScopePlaces


class HostView:
    def __init__(self, host: HostName, snapshot: Snapshot) -> None:
        """Reads all that the host is to be told now."""
        self._host = host
        self._vms: dict[ScopeId, frozenset[ResourceName]] = {}
        self.pages: list[PageContent] = []
        self.places: list[ScopePlaces] = []
        for scope_id in snapshot.scopes_on(host):
            names = self._vms[scope_id] = self._here(snapshot.load(scope_id))
            bound = snapshot.bindings_named(names)
            self.pages.append(snapshot.page(scope_id))
            self.places.append(
                ScopePlaces(scope_id, [vm.name for vm in bound], [vm.address for vm in bound])
            )

    def is_outdated_by(self, commit: Commit) -> bool:
        """Whether VMs have come to this host or left it: then it has to be read anew."""
        return any(
            self._here(saved.scope) != self._vms.get(saved.scope.id, frozenset())
            for saved in commit.scopes
        )

    def committed(self, commit: Commit, *, after: int) -> Iterator[Committed]:
        """What of the commit concerns the host, as messages that follow number `after`."""
        pages = [page for page in commit.shown if page.scope_id in self._vms]
        bound = [
            Place.of(binding)
            for binding in commit.bound
            if binding.name in self._vms.get(binding.scope_id, ())
        ]
        if pages or bound:
            yield Committed(after + 1, pages=pages, bound=bound)

    def has(self, caller: Caller) -> bool:
        return caller.name in self._vms.get(caller.scope_id, ())

    def has_named(self, name: ResourceName) -> bool:
        return any(name in names for names in self._vms.values())

    def _here(self, scope: Scope) -> frozenset[ResourceName]:
        return frozenset(vm.name for vm in scope.resources.values() if vm.host == self._host)
