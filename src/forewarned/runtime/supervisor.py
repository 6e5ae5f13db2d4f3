"""The process an operator starts: it starts the writer, the poller and others, and restarts them.

It holds every listening socket, so that none closes with a process: clients that connect while one
is being restarted wait a moment instead of being refused. It knows nothing of events.
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

import msgspec

from forewarned.clock import monotonic
from forewarned.config.values import LogFormat
from forewarned.runtime import child_process, logs
from forewarned.runtime.listeners.sockets import Addresses, Listeners, StartError, open_listeners
from forewarned.runtime.settings import Resolved

_log = logging.getLogger(__name__)

GRACE: Final = timedelta(seconds=10)
"""How long a process may take to stop before it is killed."""
STABLE_AFTER: Final = timedelta(seconds=10)
"""A process that ran this long is restarted at once."""
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
    async with open_listeners(settings) as listeners:
        await supervise(
            _children(resolved, listeners),
            stop=stop,
            ready=lambda: welcome(listeners.addresses),
        )


def _children(resolved: Resolved, listeners: Listeners) -> "list[Child]":
    token = secrets.token_urlsafe(32) if resolved.actuators.local().actuators else ""

    def child(name: str, listener: socket.socket | None, arm: socket.socket | None = None) -> Child:
        brief = child_process.brief(
            resolved,
            supervisor=os.getpid(),
            listener=None if listener is None else listener.fileno(),
            arm_listener=None if arm is None else arm.fileno(),
            addresses=listeners.addresses,
            token=token,
        )
        return Child(f"forewarned.runtime.{name}", name, brief)

    children = [child("writer", listeners.control, listeners.arm)]
    children.append(child("poller", listeners.metadata))
    if token:
        children.append(child("actuators", None))
    return children


async def supervise(
    children: "Sequence[Child]", *, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Run them until told to stop; the writer is the first of them. Raises StartError."""
    runs = {child: asyncio.create_task(child.run(), name=child.name) for child in children}
    stopping = asyncio.create_task(stop.wait())
    try:
        all_ready = asyncio.create_task(_all_ready(children))
        await _first((all_ready, stopping, *runs.values()))
        all_ready.cancel()
        if not stop.is_set():
            ready()
            await _first((stopping, *runs.values()))
    finally:
        stopping.cancel()
        # The writer last: approvals and reports that others have taken on still need it.
        for child in reversed(children):
            await _end(child, runs[child])


class Child:
    """A process, and the ones that replace it when it dies."""

    def __init__(self, module: str, name: str, brief: child_process.Brief) -> None:
        self.name = name
        self._module = module
        self._brief = brief
        self._process: Process | None = None
        self._stopping = asyncio.Event()
        self.is_ready = asyncio.Event()
        """Whether it has ever been."""

    async def run(self) -> None:
        """Until it is stopped. Raises StartError if it can't start the first time."""
        pause = 0.0
        while True:
            began = monotonic()
            failure = await self._run_once()
            if self._stopping.is_set():
                return
            if not self.is_ready.is_set():
                raise StartError(failure)
            was_stable = monotonic() - began > STABLE_AFTER
            pause = 0.0 if was_stable else min(max(2 * pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
            _log.error(
                "a process ended and is being restarted",
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
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _run_once(self) -> str:
        """Returns why it ended."""
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            # Modules are not looked for in the folder the server is started in.
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
            failure = await self._report(process)
            status = await process.wait()
        finally:
            self._process = None
        return failure or _why_ended(self.name, status)

    async def _report(self, process: Process) -> str | None:
        """Send it its brief, and wait for its report. Returns why it can't start."""
        assert process.stdin is not None  # noqa: S101  # both are pipes
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(msgspec.json.encode(self._brief) + b"\n")
        with suppress(ConnectionError):
            await process.stdin.drain()
        line = await process.stdout.readline()
        if not line:
            return None
        report = msgspec.json.decode(line, type=child_process.StartResult)
        if report.failure is None:
            self.is_ready.set()
            _log.info("a process is ready", extra={"worker": self.name, "pid": process.pid})
        return report.failure


async def _all_ready(children: Sequence[Child]) -> None:
    for child in children:
        await child.is_ready.wait()


async def _first(tasks: Sequence[asyncio.Task[object]]) -> None:
    """Wait for one to be done. Raises what it raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def _end(child: Child, running: asyncio.Task[None]) -> None:
    child.terminate()
    _, late = await asyncio.wait((running,), timeout=GRACE.total_seconds())
    if late:
        _log.error("a process does not stop and is being killed", extra={"worker": child.name})
        child.kill()
        running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _why_ended(name: str, status: int) -> str:
    if status < 0:
        return f"{name} was killed by {signal.Signals(-status).name}"
    return f"{name} ended with status {status}; its log says why"
