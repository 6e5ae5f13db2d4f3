"""A program run as one of the fleet's VMs: it finds the service where a VM finds it.

In a namespace the metadata service is at 169.254.169.254:80, as on Azure, so that a program needs
no setting; the emulator's other listeners have the same addresses as outside. Without a namespace,
only programs that read its variables find the service.
"""

import asyncio
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote, urlsplit

from forewarned.sandbox import namespace
from forewarned.sandbox.namespace import Listen, Spawned
from forewarned.sandbox.relay import relaying

T = TypeVar("T")

ENDPOINT_VARIABLE: Final = "FOREWARNED_ENDPOINT"
CONTROL_VARIABLE: Final = "FOREWARNED_CONTROL"
METADATA: Final[Listen] = ("169.254.169.254", 80)
"""Where a VM on Azure finds it."""

_FORWARDED: Final = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_SI_KERNEL: Final = 0x80
_LOOK_AGAIN: Final = 0.2
"""Seconds. Another thread may take the signal that a child has ended."""
BY_SIGNAL: Final = 128
"""What a shell adds to a signal's number, for the exit code of a program that it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulator:
    """Where one serves, by URL."""

    metadata: str
    control: str
    arm: str | None

    def endpoint(self, vm: str) -> str:
        return f"{self.metadata}/vm/{quote(vm, safe='')}"

    def listeners(self) -> list[Listen]:
        """Those on loopback, which are also to be in a namespace."""
        urls = (self.metadata, self.control, self.arm)
        found = [_place(url) for url in urls if url is not None]
        return [place for place in found if namespace.is_loopback(place[0])]


class Backstage:
    """A thread with an event loop, for what has to be served while a program runs."""

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self._new_loop = new_loop
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="backstage", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        # Whatever is entered, and who waits for it.
        self._orders: asyncio.Queue[tuple[AbstractAsyncContextManager[Any], Future[Any]] | None]

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._orders.put_nowait, None)
        self._thread.join()

    def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """Until the end. Raises what entering it raises."""
        entered: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._orders.put_nowait, (context, entered))
        return entered.result()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=self._new_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._orders = asyncio.Queue()
        self._started.set_result(None)
        # All of it in one task: what was entered in one can't be left in another.
        async with AsyncExitStack() as stack:
            while (order := await self._orders.get()) is not None:
                context, entered = order
                try:
                    entered.set_result(await stack.enter_async_context(context))
                except Exception as error:  # noqa: BLE001  # raised where it was asked for
                    entered.set_exception(error)


def start(
    command: Sequence[str], *, vm: str, emulator: Emulator, backstage: Backstage, isolated: bool
) -> Spawned:
    """The program, about to `go`. Raises NamespaceError where it is to be isolated and can't be."""
    variables = {
        ENDPOINT_VARIABLE: f"http://{METADATA[0]}" if isolated else emulator.endpoint(vm),
        CONTROL_VARIABLE: emulator.control,
    }
    listen = [METADATA, *emulator.listeners()] if isolated else None
    spawned = namespace.spawn(command, variables=variables, listen=listen)
    for place, listener in spawned.listeners.items():
        if place == METADATA:
            host, port = _place(emulator.metadata)
            prefix = urlsplit(emulator.endpoint(vm)).path
            backstage.enter(relaying(listener, host, port, prefix=prefix))
        else:
            backstage.enter(relaying(listener, *place))
    return spawned


@contextmanager
def signals_held() -> Iterator[None]:
    """For `attend` to take. To be entered before any thread is started that must not."""
    held = {*_FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def held_signal() -> int | None:
    """One that has arrived and is not yet handled."""
    return next((number for number in _FORWARDED if number in signal.sigpending()), None)


def attend(process: "subprocess.Popen[bytes]") -> int:
    """Pass signals on until the program has ended. Its exit code, as a shell would tell it."""
    held = {*_FORWARDED, signal.SIGCHLD}
    while (code := process.poll()) is None:
        taken = signal.sigtimedwait(held, _LOOK_AGAIN)
        # What the terminal sends, as for Ctrl-C, has reached the program by itself.
        if taken is None or taken.si_signo == signal.SIGCHLD or taken.si_code == _SI_KERNEL:
            continue
        process.send_signal(taken.si_signo)
    return code if code >= 0 else BY_SIGNAL - code


def _place(url: str) -> Listen:
    parts = urlsplit(url)
    default = 443 if parts.scheme == "https" else 80
    return parts.hostname or "", parts.port or default
