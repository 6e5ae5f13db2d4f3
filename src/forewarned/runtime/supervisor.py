"""The process a person starts: it starts the writer and the pollers, and heals them.

It holds every listening socket, so that none closes with a process: who connects while one is
being healed waits a moment instead of being refused. It knows nothing of events.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import Final

import msgspec

from forewarned.config.values import LogFormat
from forewarned.runtime import child_process, logs
from forewarned.runtime.listeners.sockets import (
    Addresses,
    StartError,
    arm_listener,
    control_listener,
    control_url,
    metadata_listeners,
    url,
)
from forewarned.runtime.settings import Resolved

_log = logging.getLogger(__name__)

GRACE: Final = timedelta(seconds=10)
"""How long a process may take to stop before it is killed."""
CALM: Final = timedelta(seconds=10)
"""A process that lived this long is started again at once."""
_SHORTEST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0


def run(resolved: Resolved, welcome: Callable[[Addresses], None]) -> None:
    """Serve until told to stop; `welcome` is called once all is ready. Raises StartError."""
    # Not uvloop, whose children can't be given a group of their own: Ctrl-C is for the supervisor.
    asyncio.run(_supervise(resolved, welcome))


async def _supervise(resolved: Resolved, welcome: Callable[[Addresses], None]) -> None:
    settings = resolved.settings
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    logs.configure(level=settings.log_level, as_json=settings.log_format is LogFormat.JSON)
    with ExitStack() as stack:
        metadata = await metadata_listeners(settings.metadata, settings.workers)
        for listener in metadata:
            stack.enter_context(listener)
        control = stack.enter_context(await control_listener(settings.control))
        arm = None
        if settings.arm is not None:
            arm = stack.enter_context(await arm_listener(settings.arm))
        addresses = Addresses(
            metadata_url=url(metadata[0]),
            control_url=control_url(control, settings),
            arm_url=None if arm is None else url(arm, scheme="https"),
        )
        crew = _crew(resolved, metadata, control, arm, addresses)
        await crew.serve(stop, lambda: welcome(addresses))


def _crew(
    resolved: Resolved,
    metadata: Sequence[socket.socket],
    control: socket.socket,
    arm: socket.socket | None,
    addresses: Addresses,
) -> "Crew":
    def child(
        module: str, name: str, listener: socket.socket, arm: socket.socket | None = None
    ) -> Child:
        brief = child_process.brief(
            resolved,
            supervisor=os.getpid(),
            listener=listener.fileno(),
            arm_listener=None if arm is None else arm.fileno(),
            metadata_url=addresses.metadata_url,
            arm_url=addresses.arm_url,
            pollers=len(metadata),
        )
        return Child(module, name, brief)

    return Crew(
        writer=child("forewarned.runtime.writer", "writer", control, arm),
        pollers=[
            child("forewarned.runtime.poller", f"poller {number}", listener)
            for number, listener in enumerate(metadata, 1)
        ],
    )


class Child:
    """A process, and the one that takes its place when it dies."""

    def __init__(self, module: str, name: str, brief: child_process.Brief) -> None:
        self.name = name
        self._module = module
        self._brief = brief
        self._life: Process | None = None
        self._stopping = asyncio.Event()
        self.is_ready = asyncio.Event()
        """Whether it has been, once."""

    async def keep(self) -> None:
        """Until it is stopped. Raises StartError if it can't start the first time."""
        loop = asyncio.get_running_loop()
        pause = 0.0
        while True:
            began = loop.time()
            failure = await self._live()
            if self._stopping.is_set():
                return
            if not self.is_ready.is_set():
                raise StartError(failure)
            is_calm = loop.time() - began > CALM.total_seconds()
            pause = 0.0 if is_calm else min(max(2 * pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
            _log.error(
                "a process has ended, and is started again",
                extra={"worker": self.name, "why": failure, "in_seconds": pause},
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
                return

    def terminate(self) -> None:
        self._stopping.set()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._life is not None:
            with suppress(ProcessLookupError):
                self._life.send_signal(number)

    async def _live(self) -> str:
        """One life of it. Returns what it died of."""
        life = self._life = await asyncio.create_subprocess_exec(
            sys.executable,
            # The folder it is started in is no place to look for modules.
            "-P",
            "-m",
            self._module,
            self.name,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=self._brief.descriptors,
            process_group=0,
        )
        if self._stopping.is_set():
            self._signal(signal.SIGTERM)
        try:
            failure = await self._brief_it(life)
            status = await life.wait()
        finally:
            self._life = None
        return failure or _died_of(self.name, status)

    async def _brief_it(self, life: Process) -> str | None:
        """Until it is ready. What it says of why it can't be."""
        assert life.stdin is not None  # noqa: S101  # both are pipes
        assert life.stdout is not None  # noqa: S101
        life.stdin.write(msgspec.json.encode(self._brief) + b"\n")
        with suppress(ConnectionError):
            await life.stdin.drain()
        line = await life.stdout.readline()
        if not line:
            return None
        report = msgspec.json.decode(line, type=child_process.Report)
        if report.failure is None:
            self.is_ready.set()
            _log.info("a process is ready", extra={"worker": self.name, "pid": life.pid})
        return report.failure


class Crew:
    def __init__(self, *, writer: Child, pollers: Sequence[Child]) -> None:
        self._writer = writer
        self._pollers = pollers

    async def serve(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Raises StartError."""
        children = (self._writer, *self._pollers)
        kept = {child: asyncio.create_task(child.keep(), name=child.name) for child in children}
        stopping = asyncio.create_task(stop.wait())
        try:
            all_ready = asyncio.create_task(_all_ready(children))
            await _first((all_ready, stopping, *kept.values()))
            all_ready.cancel()
            if not stop.is_set():
                ready()
                await _first((stopping, *kept.values()))
        finally:
            stopping.cancel()
            # Pollers first: the approvals they have taken on still need the writer.
            await _end(self._pollers, kept)
            await _end([self._writer], kept)


async def _all_ready(children: Sequence[Child]) -> None:
    for child in children:
        await child.is_ready.wait()


async def _first(tasks: Sequence[asyncio.Task[object]]) -> None:
    """Wait for one to be done. Raises what it raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def _end(children: Sequence[Child], kept: dict[Child, asyncio.Task[None]]) -> None:
    ending = {kept[child] for child in children}
    for child in children:
        child.terminate()
    _, late = await asyncio.wait(ending, timeout=GRACE.total_seconds())
    for child in children:
        if kept[child] in late:
            _log.error("a process does not stop, and is killed", extra={"worker": child.name})
            child.kill()
            kept[child].cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def _died_of(name: str, status: int) -> str:
    if status < 0:
        return f"{name} was ended by {signal.Signals(-status).name}"
    return f"{name} ended with status {status}; the lines it has logged say why"
