"""The real control API on a loopback port, for commands to talk to."""

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from click.testing import CliRunner, Result

from forewarned.cli import cli
from forewarned.clock import SystemClock
from forewarned.core.tasks import ActuatorOf
from forewarned.runtime.listeners import asgi
from forewarned.runtime.listeners.acceptor import Limits
from forewarned.service.lifecycle.assignment import simulated
from tests.control.control_api import ControlApi, control_api

T = TypeVar("T")

PLAIN: Final = {
    "NO_COLOR": "1",
    "COLUMNS": "80",
    "LOGNAME": "ada",
    "FOREWARNED_CONFIG": "",
    "FOREWARNED_TOKEN": "",
    "FOREWARNED_CA": "",
}


@dataclass(frozen=True, slots=True)
class Served:
    address: str
    steered: ControlApi
    loop: asyncio.AbstractEventLoop

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Let it run where the server does, beside a command."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, *words: str, stdin: str | bytes | None = None, **variables: str) -> Result:
        return invoke(*words, stdin=stdin, FOREWARNED_CONTROL=self.address, **variables)

    def schedule(self, *names: str, type: str = "Reboot") -> str:
        """An event that these VMs are told of; returns its id."""
        self.start(self.steered.switch_on(*names)).result()
        event = self.start(self.steered.schedule(type, *names)).result()
        return str(event["event_id"])


def invoke(*words: str, stdin: str | bytes | None = None, **variables: str) -> Result:
    runner = CliRunner(env={**PLAIN, **variables})
    return runner.invoke(cli, words, input=stdin, prog_name="forewarned")


@contextmanager
def serving(
    clock: SystemClock | None = None, *, actuator_of: ActuatorOf = simulated
) -> Iterator[Served]:
    ready: Future[Served] = Future()
    stop: Future[asyncio.Event] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(clock, actuator_of, ready, stop)))
    thread.start()
    try:
        served = ready.result()
        yield served
    finally:
        event = stop.result()
        served.loop.call_soon_threadsafe(event.set)
        thread.join()


async def _serve(
    clock: SystemClock | None,
    actuator_of: ActuatorOf,
    ready: Future[Served],
    stop: Future[asyncio.Event],
) -> None:
    stopped = asyncio.Event()
    stop.set_result(stopped)
    async with control_api(clock=clock, actuator_of=actuator_of) as steered:
        listener = socket.create_server(("127.0.0.1", 0))
        host, port = listener.getsockname()
        async with asgi.serving(
            steered.app,
            listener,
            name="control",
            limits=Limits(most=100, most_of_one_address=100),
            on_stop=steered.services.changes.close,
        ):
            ready.set_result(Served(f"{host}:{port}", steered, asyncio.get_running_loop()))
            await stopped.wait()
