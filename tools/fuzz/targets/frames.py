"""The feed: frames cut anywhere are the same frames, and messages are read or refused."""

from collections.abc import Callable, Iterable
from typing import Final

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.feed import protocol
from forewarned.feed.frames import FeedBrokenError, Splitter, frame
from forewarned.service.records import Caller, PageContent, Saved
from tests.builders import NOON, a_scope, an_event

_SAVED: Final = Saved(scope=a_scope(an_event()), revision=3)
_CALLER: Final = Caller(name=ResourceName("vm1"), scope_id=ScopeId("scope1"))
_MESSAGES: Final = (
    protocol.Hello(protocol.PROTOCOL, "1.0", 7),
    protocol.ClockSet(NOON, 1.0),
    protocol.Pages([PageContent.of(_SAVED)]),
    protocol.Committed(8, [PageContent.of(_SAVED)], [], [ResourceName("vm2")]),
    protocol.SnapshotEnd(),
    protocol.Granted(1),
    protocol.Approve(1, [EventId("a")], _CALLER, "10.0.0.1"),
    protocol.AskAbout(2, ResourceName("vm1")),
    protocol.Synced(3),
)
EXAMPLES: Final = (
    *(frame(protocol.encode(message)) for message in _MESSAGES),
    b"".join(frame(protocol.encode(message)) for message in _MESSAGES),
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
)


def check(data: bytes) -> None:
    payloads = _split([data])
    assert _split(data[at : at + 1] for at in range(len(data))) == payloads
    for payload in payloads or ():
        for decode in (protocol.decode_from_writer, protocol.decode_from_poller):
            _decode(decode, payload)


def _split(chunks: Iterable[bytes]) -> list[bytes] | None:
    """None for a stream that is broken."""
    splitter, payloads = Splitter(), list[bytes]()
    try:
        for chunk in chunks:
            payloads += splitter.take(chunk)
    except FeedBrokenError:
        return None
    return payloads


def _decode(
    decode: Callable[[bytes], protocol.FromWriter | protocol.FromPoller], payload: bytes
) -> None:
    try:
        message = decode(payload)
    except FeedBrokenError:
        return
    again = protocol.encode(message)
    assert protocol.encode(decode(again)) == again, "a message changes on its way"
