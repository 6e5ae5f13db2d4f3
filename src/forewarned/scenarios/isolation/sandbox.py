"""One handler's sandbox, from outside: programs are started in it, listeners opened, all ended.

Isolated, it is a set of namespaces of its own: a network with nothing but the listeners that are
opened in it, processes that see only each other, a host name. Not isolated, it shares all that
with this process, but its programs are ended all the same.

Invariant: when the block ends, nothing that was started in it runs any more.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Self

from forewarned.sandbox.namespace import NamespaceError, ProgramError

_KEEPER: Final = "forewarned.scenarios.isolation.keeper"
_PIECE: Final = 65536
_MOST_DESCRIPTORS: Final = 8
_PATIENCE: Final = timedelta(seconds=30)
"""For the kernel to end what was killed. What is stuck in it for longer can't be helped."""
_PAUSE: Final = timedelta(seconds=1)
"""Before what has not ended is killed again."""


class SandboxError(Exception):
    """What ran in a sandbox can't be judged, or has not ended."""


class LeftRunningError(SandboxError):
    """Processes that could not be ended."""

    def __init__(self) -> None:
        super().__init__(
            "the handler has processes that can't be ended: is it running as another user, or"
            " waiting for a disk?"
        )


class KeeperLostError(SandboxError):
    """The keeper ended before it was to, and with it all that ran there."""

    def __init__(self) -> None:
        super().__init__(
            "the process that runs the handler was killed, and the handler with it: did another"
            " program or the handler itself kill it, or did memory run out?"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One that was started."""

    pid: int
    """In the sandbox."""
    output: int
    """A descriptor to read its standard output from, for the caller to close."""
    errors: int
    """The same, of its standard error."""
    exited: "asyncio.Future[int]" = field(default_factory=asyncio.Future)
    """Its exit code; minus the number of the signal that has ended it."""


class Sandbox:
    def __init__(
        self,
        *,
        addresses: Sequence[str] = (),
        is_isolated: bool,
        hostname: str = "",
        private: Sequence[str] = (),
    ) -> None:
        """`private` are folders that are to be empty at first, and gone with the sandbox."""
        self._brief = {
            "addresses": list(addresses),
            "isolated": is_isolated,
            "hostname": hostname or socket.gethostname(),
            "private": list(private),
        }
        self._channel: socket.socket
        self._keeper: asyncio.subprocess.Process
        self._received = b""
        self._descriptors: deque[int] = deque()
        self._reply: asyncio.Future[Mapping[str, Any]] | None = None  # Any: JSON
        self._asking = asyncio.Lock()
        self._programs: dict[int, Program] = {}
        self._all_ended = asyncio.Event()
        self._all_ended.set()
        self._is_killing = False
        self._loss: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Raises NamespaceError, KeeperLostError."""
        self._channel, theirs = socket.socketpair()
        with theirs:
            brief = json.dumps({**self._brief, "channel": theirs.fileno()})
            self._keeper = await asyncio.create_subprocess_exec(
                sys.executable,
                # The folder it is started in is no place to look for modules.
                *("-P", "-m", _KEEPER, brief),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                # Ctrl-C is the examination's to handle.
                start_new_session=True,
            )
        self._channel.setblocking(False)
        asyncio.get_running_loop().add_reader(self._channel, self._receive)
        try:
            said = await self._next_reply()
        except BaseException:
            await self._end()
            raise
        if said["said"] != "ready":
            await self._end()
            raise NamespaceError(said["why"])
        return self

    async def __aexit__(self, *_: object) -> None:
        """Raises LeftRunningError, KeeperLostError."""
        await self._end()
        if self._loss is not None:
            await self._loss
            raise KeeperLostError

    async def listen(self, address: str, port: int) -> socket.socket:
        """A listener in the sandbox, for the caller to serve and close.

        Raises NamespaceError, KeeperLostError.
        """
        said = await self._ask({"do": "listen", "address": address, "port": port})
        if said["said"] != "listening":
            raise NamespaceError(said["why"])
        return socket.socket(fileno=self._descriptors.popleft())

    async def start(
        self, command: Sequence[str], *, variables: Mapping[str, str | None]
    ) -> Program:
        """Start it with our environment, changed by these; None removes.

        Raises ProgramError, KeeperLostError.
        """
        said = await self._ask(
            {"do": "start", "command": list(command), "variables": dict(variables)}
        )
        if said["said"] != "started":
            raise ProgramError(command[0], said["number"])
        program: Program = said["program"]
        return program

    def send(self, number: signal.Signals) -> None:
        """A signal, to every process of the sandbox."""
        with contextlib.suppress(ConnectionError):
            self._channel.sendall(_line({"do": "signal", "number": int(number)}))

    async def all_ended(self) -> None:
        """Until no process is left: those started here, and all that these have started."""
        await self._all_ended.wait()

    async def kill(self) -> None:
        """Raises LeftRunningError."""
        try:
            async with asyncio.timeout(_PATIENCE.total_seconds()):
                while not self._all_ended.is_set():
                    # Again, because it may have forked while it was being killed. But a keeper
                    # that is busy with it would get only busier.
                    if not self._is_killing:
                        self._is_killing = True
                        self.send(signal.SIGKILL)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_PAUSE.total_seconds()):
                            await self.all_ended()
        except TimeoutError:
            raise LeftRunningError from None

    async def _ask(self, message: Mapping[str, object]) -> Mapping[str, Any]:
        """Raises KeeperLostError."""
        async with self._asking:
            try:
                self._channel.sendall(_line(message))
            except ConnectionError as error:
                if self._loss is None:
                    self._lost()
                raise KeeperLostError from error
            return await self._next_reply()

    async def _next_reply(self) -> Mapping[str, Any]:
        """Raises KeeperLostError."""
        self._reply = asyncio.get_running_loop().create_future()
        return await self._reply

    def _receive(self) -> None:
        try:
            piece, descriptors, _, _ = socket.recv_fds(self._channel, _PIECE, _MOST_DESCRIPTORS)
        except BlockingIOError:
            return
        except ConnectionError:
            piece, descriptors = b"", []
        self._descriptors += descriptors
        if not piece:
            self._lost()
            return
        *lines, self._received = (self._received + piece).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    def _hear(self, message: Mapping[str, Any]) -> None:
        match message["said"]:
            case "exited":
                program = self._programs.pop(message["pid"])
                if not program.exited.done():
                    program.exited.set_result(message["code"])
            case "all ended":
                self._all_ended.set()
            case "killed":
                self._is_killing = False
            case "started":
                # Here, because the next message may say that it has exited.
                pid = message["pid"]
                self._all_ended.clear()
                output, errors = self._descriptors.popleft(), self._descriptors.popleft()
                program = Program(pid=pid, output=output, errors=errors)
                self._programs[pid] = program
                self._answer({**message, "program": program})
            case _:
                self._answer(message)

    def _answer(self, message: Mapping[str, Any]) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(message)

    def _lost(self) -> None:
        """The keeper has been killed. What guards it ends all that ran here."""
        asyncio.get_running_loop().remove_reader(self._channel)
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(KeeperLostError())
        if not self._brief["isolated"]:
            # In case there is no guard, or it was killed, too.
            for pid in self._programs:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        self._loss = asyncio.create_task(self._mark_ended())

    async def _mark_ended(self) -> None:
        await self._keeper.wait()
        for program in self._programs.values():
            if not program.exited.done():
                program.exited.set_result(-signal.SIGKILL)
        self._programs.clear()
        self._all_ended.set()

    async def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)
        self._channel.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        try:
            async with asyncio.timeout(_PATIENCE.total_seconds()):
                await self._keeper.wait()
        except TimeoutError:
            # All of its group: isolated, the kernel ends the rest with the first in the namespace.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._keeper.pid, signal.SIGKILL)
            raise LeftRunningError from None


def _line(message: Mapping[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"
