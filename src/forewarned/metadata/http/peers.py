"""The client of a connection: where it comes from, and the VM bound to that."""

import asyncio
from collections.abc import Callable

from forewarned.metadata.http.limits import Bucket
from forewarned.metadata.http.responses import Rendered
from forewarned.metadata.options import EmulatorAccess, Options
from forewarned.metadata.refusals import Reason, Refusal
from forewarned.service.board import Page
from forewarned.service.fleet.addresses import port_mark
from forewarned.service.lifecycle.ports import Timer
from forewarned.service.records import Caller
from forewarned.service.requests.ports import Directory


class Peer:
    __slots__ = ("address", "bucket", "caller", "delay", "generation", "page", "page_generation")

    def __init__(self, address: str) -> None:
        """`address` is as in a Binding: the socket's peer, or the port it comes from."""
        self.address = address
        self.caller: Caller | None = None
        self.generation = -1
        """The Directory's generation when the caller was looked up."""
        self.bucket: Bucket | None = None
        """The caller's; None until first needed."""
        self.page: Page[Rendered] | None = None
        """The page of the caller's scope."""
        self.page_generation = -1
        """The Board's generation when the page was looked up."""
        self.delay: asyncio.Future[None] | None = None
        """Set while an answer is being delayed; cancel it to end the delay."""

    async def sit_out(self, start: "Callable[[asyncio.Future[None]], Timer]") -> None:
        """Wait until the timer that `start` sets ends the delay, or until the client is gone."""
        over = self.delay = asyncio.get_running_loop().create_future()
        timer = start(over)
        try:
            await over
        finally:
            timer.cancel()
            self.delay = None

    @property
    def is_loopback(self) -> bool:
        return self.address.startswith("127.") or self.address == "::1"


class Identity:
    """Identifies callers. Invariant: by what the socket says of its peer, never by a header.

    In an emulator one laptop plays every VM: callers on loopback, and others if it is open to its
    network, may be the VM that the path names.
    """

    def __init__(self, directory: Directory, options: Options) -> None:
        self._directory = directory
        self._emulator = options.emulator
        self._access = options.emulator_access
        self._default_vm = options.default_vm
        self._host = options.host

    def caller(self, peer: Peer, vm: str | None) -> Caller | None:
        if vm is not None:
            return self._directory.by_name(vm) if self._may_name(peer) else None
        # Looked up once for each connection, and again when the fleet has changed.
        generation = self._directory.generation
        if peer.generation != generation:
            peer.caller = self._by_address(peer)
            peer.generation = generation
            peer.bucket, peer.page_generation = None, -1
        return peer.caller

    def _by_address(self, peer: Peer) -> Caller | None:
        bound = self._directory.by_address(peer.address)
        if bound is not None or not self.may_choose(peer):
            return bound
        if self._default_vm is None:
            return self._directory.first()
        return self._directory.by_name(self._default_vm)

    def may_choose(self, peer: Peer) -> bool:
        """Whether it may be any VM: a caller that this emulator is open to."""
        return self._emulator and self._may_name(peer)

    def _may_name(self, peer: Peer) -> bool:
        """By a path, which only an emulator has."""
        # On this machine: on loopback, or calling from the listener's own address.
        is_local = peer.is_loopback or peer.address == self._host
        return is_local or self._access is EmulatorAccess.NETWORK

    def key(self, peer: Peer) -> str | None:
        """What the connection is counted for; None if it may turn out to be any VM's."""
        caller = self._directory.by_address(peer.address)
        if caller is None:
            return None if self.may_choose(peer) else peer.address
        peer.caller = caller
        peer.generation = self._directory.generation
        return caller.name

    def refusal(self, peer: Peer, vm: str | None) -> Refusal:
        """Why there is no caller, and what to do about it."""
        if vm is not None and not self._may_name(peer):
            return Refusal(
                reason=Reason.UNKNOWN_ADDRESS,
                message="Paths that begin with /vm/ are for callers on loopback only, unless the"
                " emulator is started with --emulator-access network.",
            )
        if vm is not None:
            return _unknown_vm(f"no VM is named {vm!r}")
        if self.may_choose(peer) and self._default_vm is not None:
            return _unknown_vm(f"the default VM {self._default_vm!r} is not in the fleet")
        if self.may_choose(peer):
            return _unknown_vm("the fleet has no VMs")
        return Refusal(reason=Reason.UNKNOWN_ADDRESS, message=_unknown_address(peer.address))


def end_delay(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)


def _unknown_address(address: str) -> str:
    mark = port_mark(address)
    if mark is not None:
        return f"Port mark {mark} is not bound to any VM: give it to one in the fleet."
    return f"Address {address} is not bound to any VM: bind it to one in the fleet."


def _unknown_vm(what: str) -> Refusal:
    return Refusal(
        reason=Reason.UNKNOWN_VM,
        message=f"Not found: {what}. `forewarned fleet show` lists the VMs.",
    )
