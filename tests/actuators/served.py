"""The control API of a server with an actuator, at a socket."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forewarned.core.model import Resource
from forewarned.runtime.listeners.acceptor import Limits, Tls
from forewarned.runtime.listeners.asgi import serving
from tests.control.control_api import ControlApi


def rack1(_: Resource) -> str:
    return "rack1"


def no_tls() -> None:
    return None


@asynccontextmanager
async def served(control: ControlApi, tls: Tls = no_tls) -> AsyncIterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        limits = Limits(most=100, most_of_one_address=100)
        async with serving(
            control.app,
            listener,
            name="control",
            limits=limits,
            tls=tls,
            on_stop=control.services.close,
        ):
            yield f"{'http' if tls is no_tls else 'https'}://127.0.0.1:{port}"
