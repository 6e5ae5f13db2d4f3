"""A node's answers to VMs: the real ones of `metadata.node_answers`, without HTTP and sockets."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec
from typing_extensions import override

from forewarned.core.errors import UnknownEventError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.metadata.answers import NOT_YET
from forewarned.metadata.counts import Counts
from forewarned.metadata.http.barrier import Barrier
from forewarned.metadata.http.peers import Identity, Peer
from forewarned.metadata.http.responses import DateLine, Persistence, Response
from forewarned.metadata.node_answers import NodeAnswers
from forewarned.metadata.options import Options
from forewarned.metadata.routes import Approve, Operation, ReadEvents, RoutedRequest
from forewarned.runtime.assembly import BoardDelivery
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import About, Caller
from forewarned.service.use_cases import UseCases
from tests.simulation import laws
from tests.simulation.clock import NodeClock, TrueTime
from tests.simulation.store.store import SimulatedStore
from tests.stateful.oracle import Shown

_OPTIONS: Final = Options(rate_limit=None)
_TAG: Final = re.compile(rb'\r\nETag: "([0-9]+)"\r\n')
_NEVER: Final = -(10**18)
_SECOND: Final = 1_000_000_000


class UnknownVmError(Exception):
    """The node knows of no such VM."""


class Connection(Peer):
    """Of one VM to one node, until it moves, starts again, or has said nothing for a while."""

    __slots__ = ("_ended_by", "last_used", "name", "served", "was_cut_off")

    def __init__(self, name: str, ended_by: Callable[[], bool], *, address: str) -> None:
        super().__init__(address)
        self.name = name
        self.served = 0
        """Documents."""
        self.last_used = _NEVER
        self.was_cut_off = False
        """Whether the node was cut off from the store, long enough to know, at the last answer."""
        self._ended_by = ended_by

    def is_open(self, now: int) -> bool:
        idle = now - self.last_used
        return not self._ended_by() and idle < _OPTIONS.idle_timeout.total_seconds() * _SECOND


class _VmIdentity(Identity):
    """By the VM's name: that addresses are told apart is left to `tests.metadata`."""

    def __init__(self, delivery: BoardDelivery) -> None:
        super().__init__(delivery.directory, _OPTIONS)
        self._delivery = delivery

    @override
    def _by_address(self, peer: Peer) -> Caller | None:
        assert isinstance(peer, Connection)
        return self._delivery.directory.by_name(peer.name)


class _ToldReader:
    """Tells of each read that the node notes."""

    def __init__(self, parts: "Parts") -> None:
        self._reader = parts.use_cases.activation
        self._board = parts.delivery.board
        self._told = parts.told

    def seen(self, scope_id: ScopeId, reader: ResourceName) -> None:
        self._reader.seen(scope_id, reader)
        self._told(Caller(reader, scope_id))

    async def activate(self, caller: Caller, *, address: str) -> None:
        laws.i26_polls_ask_the_store_nothing(self._board, caller.scope_id, caller.name)
        await self._reader.activate(caller, address=address)
        self._told(caller)

    async def about(self, name: ResourceName) -> About | None:
        return await self._reader.about(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Of the node that listens."""

    store: SimulatedStore
    clock: NodeClock
    true: TrueTime
    delivery: BoardDelivery
    barrier: Barrier
    use_cases: UseCases
    told: Callable[[Caller], None]
    cut_off_since: Callable[[], int | None]
    """By the true monotonic clock, in nanoseconds; None while the store can be reached."""


class Listener:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._date_line = DateLine(parts.clock)
        self._fresh = 0
        self._served: dict[str, int] = {}
        """When each VM was last given a document here."""
        self._answers = NodeAnswers(
            parts.barrier,
            board=parts.delivery.board,
            directory=parts.delivery.directory,
            identity=_VmIdentity(parts.delivery),
            reader=_ToldReader(parts),
            approver=parts.use_cases.approvals,
            clock=parts.clock,
            counts=Counts(),
            date_line=self._date_line,
            rate_limit=None,
            options=_OPTIONS,
        )

    async def poll(self, connection: Connection, version: str) -> Shown | None:
        """None for any answer but a document."""
        arrived = self._now()
        since = self._parts.cut_off_since()
        last = self._served.get(connection.name, _NEVER)
        is_newcomer = not connection.served and arrived - last > laws.FORGOTTEN_AFTER
        response = await self._answer(connection, ReadEvents(version, frozenset()))
        now = self._now()
        connection.last_used = now
        connection.was_cut_off = self._was_cut_off(since, arrived)
        if response.status != HTTPStatus.OK:
            return None
        if connection.was_cut_off:
            laws.i24_no_newcomer_is_served(connection.name, is_newcomer=is_newcomer)
        self._served[connection.name] = now
        connection.served += 1
        head, _, body = response.spliced(b"some date", Persistence.KEEP_ALIVE).partition(
            b"\r\n\r\n"
        )
        tag = _TAG.search(head + b"\r\n")
        assert tag is not None, f"I6: a document without its ETag: {head!r}"
        return Shown(tag=tag[1].decode(), body=body)

    async def approve(self, connection: Connection, event_ids: Sequence[EventId]) -> None:
        """Raises UnknownEventError, UnknownVmError, StoreUnavailableError."""
        arrived, since = self._now(), self._parts.cut_off_since()
        requests = [{"EventId": each} for each in event_ids]
        body = msgspec.json.encode({"StartRequests": requests})
        response = await self._answer(connection, Approve(body))
        if self._was_cut_off(since, arrived):
            laws.i24_approvals_are_refused(connection.name, response)
        if response.status == HTTPStatus.BAD_REQUEST:
            raise UnknownEventError(event_ids[0])
        if response.status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise StoreUnavailableError("503")
        if response.status != HTTPStatus.OK:
            raise UnknownVmError(f"{response.status} {response.reason}")

    async def _answer(self, connection: Connection, operation: Operation) -> Response:
        """As `metadata.http.connection` asks for it."""
        self.note_looks()
        self._date_line.refresh()
        request = RoutedRequest(operation=operation, persistence=Persistence.KEEP_ALIVE)
        now = self._now() / _SECOND
        response = self._answers.at_once(request, connection, now)
        if response is NOT_YET:
            wait = self._answers.wait_of(request, connection, now)
            if self._parts.store.following is not None:
                await self._parts.store.following.caught_up()
            self.note_looks()
            response = self._answers.after_wait(request, connection, wait)
        return response or await self._answers.later(request, connection)

    def _was_cut_off(self, since: int | None, arrived: int) -> bool:
        """Since long before the request came, until its answer."""
        is_long = since is not None and arrived - since > laws.NOTICED_AFTER
        return is_long and since == self._parts.cut_off_since()

    def note_looks(self) -> None:
        """Those since the last one, none of which has found anything."""
        if self._parts.store.following is not None:
            began = self._parts.store.following.look_idly()
            if began > self._fresh:
                self._fresh = began
                self._parts.barrier.fresh(began)

    def _now(self) -> int:
        return self._parts.true.monotonic_ns()
