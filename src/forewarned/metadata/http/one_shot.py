"""A new connection: for one poll, as many clients open it, or to stay.

The system hands it over with its first request. Where that is a known poll which ends the
connection, it is answered and closed before anything was made to keep it by. All others get a
`Stream`.
"""

import os
from typing import Final

from forewarned.metadata import errors
from forewarned.metadata.answers import HELD
from forewarned.metadata.http.connection import SMALL, Connection, Surroundings
from forewarned.metadata.http.peers import Peer
from forewarned.metadata.http.responses import Persistence

_CLOSED: Final = Persistence.CLOSED


def meet(around: Surroundings, fd: int, address: str) -> None:
    """`fd` is of a connected socket that does not block. Nobody else may close it."""
    peer = Peer(address)
    key = around.identity.key(peer)
    refusal = around.roster.refusal(key)
    if refusal is not None:
        stream = Connection(around, fd, address)
        # Ending with a request unread would throw away what is held back.
        stream.let_go()
        stream.answer(errors.refused(refusal), _CLOSED)
        return
    try:
        chunk = os.read(fd, SMALL)
    except (BlockingIOError, InterruptedError):
        _kept(around, fd, address, key)
        return
    except OSError:
        os.close(fd)
        return
    # A full chunk may not be all that was sent.
    ask = around.recognition.find(chunk) if len(chunk) < SMALL else None
    if ask is None or ask.persistence is not _CLOSED or around.faulting.is_active:
        _kept(around, fd, address, key).receive(chunk)
        return
    response = around.answers.at_once(ask, peer, around.monotonic())
    if response is None or response is HELD or response.reason:
        _kept(around, fd, address, key).give(response, ask)
        return
    whole = response.spliced(around.date_line.text, _CLOSED)
    try:
        sent = os.write(fd, whole)
    except OSError:
        sent = 0  # whatever it is, the stream will meet it again
    if sent == len(whole):
        os.close(fd)
        return
    stream = _kept(around, fd, address, key)
    stream.write(whole[sent:])
    stream.close()


def _kept(around: Surroundings, fd: int, address: str, key: str | None) -> Connection:
    """The connection as one of those that are counted and looked after, before anything else."""
    stream = Connection(around, fd, address)
    stream.stay(key)
    return stream
