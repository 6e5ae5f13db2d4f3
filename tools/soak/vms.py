"""VMs that poll every node in turn, report that they are ready for events, and approve them.

Laws that they check: I7, the incarnation that a VM reads never falls, whichever node it asks; I6,
one incarnation is one document. A VM has one request under way at most, so its answers have an
order.
"""

import asyncio
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import exchange
from benchmarks.exchange import Answer
from benchmarks.product import Product
from tools.soak.operators import Fate, fate
from tools.soak.requests import RefusedError, ask, beats
from tools.soak.tally import Tally

ONE_WAITS_OF: Final = 25
"""So many VMs poll, and the last of them waits in long polls, as those with our SDK do."""
_WAIT: Final = 60.0
"""Seconds that a server lets a long poll wait."""
_LATE: Final = 30.0


@dataclass(slots=True, kw_only=True)
class Vm:
    name: str
    address: str
    node: int
    """Which of the nodes it asks next."""
    incarnation: int = -1
    """The last that it has read; -1 before it has read any."""
    digest: int = 0
    """Of the document that it was of."""
    is_busy: bool = False


class Vms:
    def __init__(
        self, nodes: Sequence[Product], vms: Sequence[Vm], *, rate: float, tally: Tally
    ) -> None:
        """`rate` is how many polls they send in a second, all together."""
        self.have_read = asyncio.Event()
        """Set once each of them has: events of those that never read start at once."""
        self._ports = [node.metadata for node in nodes]
        self._polling = [vm for number, vm in enumerate(vms) if number % ONE_WAITS_OF]
        self._waiting = [vm for number, vm in enumerate(vms) if not number % ONE_WAITS_OF]
        self._unread = len(vms)
        self._rate = rate
        self._tally = tally

    async def run(self) -> None:
        async with asyncio.TaskGroup() as under_way:
            for vm in self._waiting:
                under_way.create_task(self._wait(vm))
            number = 0
            async for _ in beats(self._rate):
                vm = self._polling[number % len(self._polling)]
                number += 1
                if not vm.is_busy:
                    vm.is_busy = True
                    under_way.create_task(self._poll(vm))

    async def _poll(self, vm: Vm) -> None:
        try:
            await self._ask(vm, "poll", exchange.poll())
        finally:
            vm.is_busy = False

    async def _wait(self, vm: Vm) -> None:
        while vm.incarnation < 0:
            await self._ask(vm, "poll", exchange.poll())
        while True:
            await self._ask(vm, "wait", exchange.long_poll(vm.incarnation), _WAIT + _LATE)
            # A server that refuses must not be asked all the time.
            await asyncio.sleep(0.1)

    async def _ask(self, vm: Vm, what: str, request: bytes, within: float = _LATE) -> None:
        port = self._ports[vm.node]
        if what == "poll":
            # Those that wait stay at their node, which then has as many descriptors all the time.
            vm.node = (vm.node + 1) % len(self._ports)
        events: Sequence[Any] = ()  # Any: JSON
        with self._tally.doing(what):
            answer = await ask(port, request, source=vm.address, within=within)
            events = self._read(vm, answer)
        for event in events:
            await self._prepare(vm, event, port)

    def _read(self, vm: Vm, answer: Answer) -> Sequence[Any]:
        """The document's events. Raises RefusedError."""
        if answer.status != 200:
            raise RefusedError(answer.status, answer.body)
        try:
            document = json.loads(answer.body)
        except ValueError:
            self._tally.broke(f"{vm.name} read a document that is not whole: {answer.body!r}")
            return ()
        incarnation, digest = document["DocumentIncarnation"], zlib.crc32(answer.body)
        if incarnation < vm.incarnation:
            self._tally.broke(f"I7: {vm.name} read {incarnation} after {vm.incarnation}")
        if incarnation == vm.incarnation and digest != vm.digest:
            self._tally.broke(f"I6: {vm.name} read two documents with incarnation {incarnation}")
        if vm.incarnation < 0:
            self._unread -= 1
            if not self._unread:
                self.have_read.set()
        vm.incarnation, vm.digest = incarnation, digest
        found: Sequence[Any] = document["Events"]
        return found

    async def _prepare(self, vm: Vm, event: Any, port: int) -> None:
        """Report that the VM is ready, and approve, where that is the event's fate."""
        event_id: str = event["EventId"]
        is_own = event["EventStatus"] == "Scheduled" and vm.name in event["Resources"]
        if not is_own or fate(event["EventType"], event_id) is not Fate.APPROVED:
            return
        # At the node that has shown the event.
        for what, request in (
            ("readiness", _ready(event_id)),
            ("approve", exchange.own_approval(event_id)),
        ):
            with self._tally.doing(what):
                answer = await ask(port, request, source=vm.address)
                if answer.status != 200:
                    raise RefusedError(answer.status, answer.body)


def _ready(event_id: str) -> bytes:
    return (
        f"PUT /metadata/forewarned/readiness?event={event_id} HTTP/1.1\r\n"
        "Host: 169.254.169.254\r\nMetadata: true\r\nContent-Length: 0\r\n\r\n"
    ).encode()
