"""Calls into C code that blocks: each in a thread of its own.

Invariant: the event loop never waits for libvirt. A call whose caller has gone, or that never
returns, keeps neither the loop nor the end of the process waiting; so no pool of threads, which
Python joins before it exits.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """Cancelled, it leaves the call running."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001  # it is raised where the call is awaited
            tell(outcome.set_exception, error)
        else:
            tell(outcome.set_result, result)

    def tell(settle: Callable[..., None], value: object) -> None:
        # A loop that has ended takes nothing any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if outcome.done() else settle(value))

    threading.Thread(target=run, daemon=True, name="libvirt-call").start()
    return await outcome
