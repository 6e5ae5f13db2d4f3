"""Actuators that run until SIGTERM or Ctrl-C."""

import asyncio
import signal
from pathlib import Path

from forewarned.actuators.assembly import run_actuators
from forewarned.actuators.http_desk import Server
from forewarned.actuators.settings import Declared


async def run_until_stopped(declared: Declared, server: Server, state: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run_actuators(declared, server, state=state, stop=stop)
