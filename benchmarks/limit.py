"""The least a Python server can do for a poll: any bytes in, the same finished answer out.

What the metadata listener is measured against. It parses nothing, knows no caller and keeps no
limit, so no server of this kind (a protocol on uvloop) can be quicker.
"""

import asyncio
import sys
from typing import cast

import uvloop
from typing_extensions import override


class Parrot(asyncio.Protocol):
    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._transport: asyncio.WriteTransport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports write, but are no instances of the class that says so.
        self._transport = cast("asyncio.WriteTransport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(self._answer)


async def _main(answer: bytes) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Parrot(answer), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_main(sys.stdin.buffer.read()))
