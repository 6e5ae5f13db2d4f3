"""A supervisor with children of every sort. What becomes of real ones is tested end to end."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Coroutine, Iterator

import pytest

from forewarned.config.values import Address
from forewarned.runtime import child_process
from forewarned.runtime.listeners.sockets import (
    Addresses,
    StartError,
    control_listener,
    metadata_listener,
)
from forewarned.runtime.settings import load
from forewarned.runtime.supervisor import Child, supervise

ADDRESSES = Addresses(metadata_url="http://127.0.0.1:1", control_url="", arm_url=None)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


def a_child(module: str, listener: socket.socket) -> Child:
    resolved = load(flags={}, environ={})
    return Child(
        module,
        "writer",
        child_process.brief(
            resolved,
            supervisor=os.getpid(),
            listener=listener.fileno(),
            addresses=ADDRESSES,
        ),
    )


def run(served: Callable[[], Coroutine[None, None, None]]) -> None:
    """On the supervisor's own loop, which can give its children a group of their own."""
    asyncio.run(asyncio.wait_for(served(), 60))


def test_a_child_that_can_not_start_ends_the_server_and_says_so(listener: socket.socket) -> None:
    async def served() -> None:
        await supervise(
            [
                a_child("no.such.module", listener),
                a_child("forewarned.runtime.poller", listener),
            ],
            stop=asyncio.Event(),
            ready=lambda: None,
        )

    with pytest.raises(StartError, match="writer ended with status 1"):
        run(served)


def test_a_server_told_to_stop_before_it_is_ready_stops(listener: socket.socket) -> None:
    async def served() -> None:
        stop = asyncio.Event()
        stop.set()
        await supervise(
            [
                a_child("forewarned.runtime.poller", listener),
                a_child("forewarned.runtime.poller", listener),
            ],
            stop=stop,
            ready=lambda: pytest.fail("it was never ready"),
        )

    run(served)


async def test_an_address_that_is_taken_is_named_with_what_to_do_about_it(
    listener: socket.socket,
) -> None:
    taken = Address(*listener.getsockname())

    with pytest.raises(StartError, match=f"can't listen on {taken}.*--metadata another address"):
        await metadata_listener(taken)
    with pytest.raises(StartError, match=f"can't listen on {taken}.*--control another address"):
        await control_listener(taken)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EADDRNOTAVAIL, "no interface of this machine has that address.*--control another"),
        (errno.EACCES, "CAP_NET_BIND_SERVICE.*--control a port above 1023"),
        (errno.EAFNOSUPPORT, "give --control another address"),
    ],
)
async def test_an_address_that_can_t_be_used_is_named_with_what_to_do_about_it(
    number: int, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket.socket, "bind", refuse)

    with pytest.raises(StartError, match=rf"{os.strerror(number)}.*\): .*{advice}"):
        await control_listener(Address("192.0.2.1", 80))


async def test_an_address_that_becomes_free_in_a_moment_is_waited_for(
    listener: socket.socket,
) -> None:
    """A server that was killed takes a moment to be gone."""
    taken = Address(*listener.getsockname())
    asyncio.get_running_loop().call_later(0.05, listener.close)

    opened = await metadata_listener(taken)

    assert opened.getsockname() == (taken.host, taken.port)
    opened.close()
