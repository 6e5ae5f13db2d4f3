"""A new connection: for a single poll, as many clients open one, or to be kept open.

The kernel hands it over with its first request. If that is a known poll with `Connection: close`,
it is answered and closed before any object for the connection exists. All others get a
`Connection`.
"""

import os
from typing import Final

from forewarned.metadata import errors
from forewarned.metadata.answers import NOT_YET
from forewarned.metadata.http.connection import SMALL, Connection, ListenerContext
from forewarned.metadata.http.peers import Peer
from forewarned.metadata.http.responses import Persistence

_CLOSE: Final = Persistence.CLOSE


def serve(context: ListenerContext, fd: int, address: str) -> None:
    """`fd` is a connected, non-blocking socket, which is closed here or by its `Connection`."""
    peer = Peer(address)
    key = context.identity.key(peer)
    refusal = context.open_connections.refusal(key)
    if refusal is not None:
        connection = Connection(context, fd, address)
        # Closing with the request unread would discard an answer that is still held back.
        connection.uncork()
        connection.answer(errors.refused(refusal), _CLOSE)
        return
    try:
        chunk = os.read(fd, SMALL)
    except (BlockingIOError, InterruptedError):
        _keep(context, fd, address, key)
        return
    except OSError:
        os.close(fd)
        return
    # If the chunk is full, more may follow.
    request = context.request_cache.find(chunk) if len(chunk) < SMALL else None
    if request is None or request.persistence is not _CLOSE or context.fault_injector.is_active:
        _keep(context, fd, address, key).receive(chunk)
        return
    response = context.answers.at_once(request, peer, context.monotonic())
    if response is None or response is NOT_YET or response.reason:
        _keep(context, fd, address, key).give(response, request)
        return
    whole = response.spliced(context.date_line.text, _CLOSE)
    try:
        sent = os.write(fd, whole)
    except OSError:
        sent = 0  # the connection will run into the same error, and handles it
    if sent == len(whole):
        os.close(fd)
        return
    connection = _keep(context, fd, address, key)
    connection.write(whole[sent:])
    connection.close()


def _keep(context: ListenerContext, fd: int, address: str, key: str | None) -> Connection:
    """Make it one of the open connections before anything else: they are counted and swept."""
    connection = Connection(context, fd, address)
    connection.keep_open(key)
    return connection
