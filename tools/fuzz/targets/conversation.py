"""What VMs send, in chunks, and what they are answered: by sight or read with care, the same."""

import atexit
import functools
import re
from typing import Final

from tests.metadata.fakes import EVENTS, get, post
from tests.metadata.test_differential import CLOSING, Pair
from tools.fuzz.targets import requests

CUT: Final = b"\x00\xff"
"""In an input: where the stream is cut."""

EXAMPLES: Final = (
    *requests.EXAMPLES,
    CUT.join([get(), get()]),
    CUT.join([get()[:30], get()[30:], get(f"/vm/vm1{EVENTS}")]),
    CUT.join([get(Expect="100-continue", Content_Length="2", method="POST"), b"{}"]),
    get(f"{EVENTS}&last-incarnation=1") + get(If_None_Match='"2"'),
    get("/metadata/instance/compute/name?api-version=2021-12-13&format=text"),
    post('{"StartRequests":[]}') + post("{"),
    get(method="HEAD"),
    *CLOSING,
)
_MOST: Final = 16384
_HELD: Final = re.compile(rb"wait=", re.IGNORECASE)
"""Polls that are held until a time has come, which here stands still. One ends with its connection,
but not if more requests have arrived behind it: then no more is read."""


@functools.cache
def _pair() -> Pair:
    """The two listeners, for as long as the process lasts."""
    pair = Pair()
    pair.open()
    atexit.register(pair.close)
    return pair


def check(data: bytes) -> None:
    chunks = [chunk for chunk in data[:_MOST].split(CUT)[:16] if chunk]
    if not chunks or _HELD.search(b"".join(chunks)):
        return
    known, careful = _pair().answer(chunks, is_met_early=len(data) % 2 == 0)
    assert known == careful, "what is known by sight is answered otherwise"
    assert b"HTTP/1.1 500" not in known[0], "the server failed"
