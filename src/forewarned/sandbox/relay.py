"""Passes connections on to a server, as they are or as those of one VM.

Invariant: what is sent on as a VM's never reaches the server without the VM's prefix. So each
request is followed to its end, and where its end can't be told, nothing is passed on after it.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

_PIECE: Final = 64 * 1024
_BLANK: Final = frozenset({b"\r\n", b"\n", b""})
_RESET: Final = struct.pack("ii", 1, 0)
"""For SO_LINGER: to close is to reset."""


class _UnclearError(Exception):
    """No telling where this request ends. What has been passed on is the server's to refuse."""


@asynccontextmanager
async def relaying(
    listener: socket.socket, host: str, port: int, *, prefix: str = ""
) -> AsyncIterator[None]:
    """Connections to the listener go to the server; with a prefix before the path of each request.

    Ends with every connection it has made.
    """
    under_way: set[asyncio.Task[None]] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # asyncio runs this as one
        under_way.add(task)
        try:
            # Python 3.11 logs a traceback for each connection whose task ends as canceled.
            with suppress(asyncio.CancelledError):
                await _converse(reader, writer, host, port, prefix.encode())
        finally:
            under_way.discard(task)

    server = await asyncio.start_server(take, sock=listener)
    try:
        yield
    finally:
        server.close()
        for task in tuple(under_way):
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _converse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, prefix: bytes
) -> None:
    try:
        server_reader, server_writer = await asyncio.open_connection(host, port)
    except OSError:
        _reset(writer)
        return
    asking = asyncio.create_task(_ask(reader, server_writer, prefix))
    try:
        await _copy(server_reader, writer)
        writer.close()
    except ConnectionError:
        # A server that resets a connection may be meant to: faults do.
        _reset(writer)
    finally:
        asking.cancel()
        server_writer.close()
        writer.close()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, prefix: bytes) -> None:
    with suppress(ConnectionError, _UnclearError, ValueError, asyncio.IncompleteReadError):
        if prefix:
            while await _pass_request_on(reader, writer, prefix):
                pass
        else:
            await _copy(reader, writer)
        # The client has nothing more to say, or is gone.
        writer.write_eof()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()


async def _pass_request_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, prefix: bytes
) -> bool:
    """False if there is none. Raises _UnclearError, and ValueError for a line without end."""
    line = await reader.readline()
    if not line:
        return False
    if line in _BLANK:
        # Some clients send one after a body, and servers pass it over.
        return True
    method, _, rest = line.partition(b" ")
    if not rest.startswith(b"/"):
        writer.write(line)
        await _pass_headers_on(reader, writer)
        raise _UnclearError
    writer.write(method + b" " + prefix + rest)
    length = await _pass_headers_on(reader, writer)
    if length is None:
        await _pass_chunks_on(reader, writer)
    while length:
        piece = await reader.read(min(length, _PIECE))
        if not piece:
            return False
        length -= len(piece)
        writer.write(piece)
        await writer.drain()
    return True


async def _pass_headers_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> int | None:
    """How long the body is; None for one in chunks. Raises _UnclearError."""
    length, in_chunks = b"0", False
    while (line := await reader.readline()) not in _BLANK:
        name, _, value = line.partition(b":")
        match name.strip().lower():
            case b"content-length":
                length = value.strip()
            case b"transfer-encoding":
                in_chunks = True
            case _:
                pass
        writer.write(line)
    writer.write(line)
    await writer.drain()
    if not length.isdigit():
        raise _UnclearError
    return None if in_chunks else int(length)


async def _pass_chunks_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        line = await reader.readline()
        writer.write(line)
        size = int(line.partition(b";")[0], 16)
        if not size:
            break
        # With the end of line that follows each.
        writer.write(await reader.readexactly(size + 2))
        await writer.drain()
    await _pass_headers_on(reader, writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
