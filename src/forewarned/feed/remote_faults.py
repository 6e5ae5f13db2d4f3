"""The writer's faults, as a poller's metadata listener asks for them."""

from forewarned.core.ids import ResourceName
from forewarned.feed.protocol import FaultTaken, TakeFault
from forewarned.feed.remote import RemoteWriter
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.faults import Fault, FaultMethod, Watcher, first_match


class RemoteFaults:
    """The list is here, so that most requests need not ask; the counting is the writer's."""

    def __init__(self, asking: RemoteWriter) -> None:
        self._asking = asking
        self._watchers: list[Watcher] = []
        self.active: tuple[Fault, ...] = ()

    def watch(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def show(self, faults: list[Fault]) -> None:
        """These there are from now on."""
        active = tuple(faults)
        if active == self.active:
            return
        self.active = active
        for watcher in self._watchers:
            watcher(active)

    async def take(self, vm: ResourceName, method: FaultMethod) -> Fault | None:
        if first_match(self.active, vm, method) is None:
            return None
        try:
            answer = await self._asking.ask(
                lambda number: TakeFault(number, vm, method), FaultTaken
            )
        except StoreUnavailableError:
            # Faults end with the writer that had them.
            return None
        return answer.fault
