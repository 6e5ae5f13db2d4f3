"""Threads that outlive those who wait for them."""

import asyncio
import threading
from contextlib import closing
from io import StringIO

import pytest

from forewarned.storage.connection_threads import (
    ConnectionThreads,
    QueuedCall,
    QueuedCalls,
    unchanged,
)

TOO_LONG = 30
Threads = ConnectionThreads[StringIO, None]


def test_a_thread_that_outlives_the_event_loop_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As at the end of a server whose database does not answer."""
    errors: list[object] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    is_free, begun = threading.Event(), threading.Event()
    thread: list[threading.Thread] = []

    def wait(_: None) -> None:
        thread.append(threading.current_thread())
        begun.set()
        is_free.wait(TOO_LONG)

    def run_one(_: StringIO, calls: QueuedCalls[None]) -> list[QueuedCall[None]]:
        call = next(calls)
        call.run(None)
        return [call]

    async def leave() -> None:
        async with Threads("t", StringIO, run_one, patience=0) as threads:
            asking = asyncio.create_task(threads.run(wait, unchanged))
            await asyncio.to_thread(begun.wait, TOO_LONG)
        asking.cancel()

    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(leave())
        loop.run_until_complete(loop.shutdown_default_executor())
    is_free.set()
    thread[0].join(TOO_LONG)

    assert not thread[0].is_alive()
    assert errors == []
