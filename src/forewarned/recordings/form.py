"""A recording as lines of JSON. Pure.

A line is one thing that happened, with its instant: recording began, the endpoint's answer
differed from the one before, it did not answer, recording stopped. Bodies are kept as text, byte
for byte, whatever they are: what an endpoint says when it is wrong is worth as much as a document.

Invariant: every line can be read without the others, and ends with a newline. So a line that a
crash has cut off is known by its missing newline, and costs nothing but itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

VERSION: Final = 1


class RecordingError(Exception):
    """The file is not a recording, or one of its lines can't be read."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="entry"):
    at: datetime
    """By the clock of the machine that recorded it."""


class Began(_Line, frozen=True, tag="began"):
    """Recording began, or went on after a pause in which no one looked."""

    recording: int
    """The version of this form."""
    endpoint: str = ""
    """Empty in an anonymous recording."""
    api_version: str = ""
    vm: str = ""
    """The VM that read it, as the endpoint named it; empty if the endpoint did not say."""
    anonymous: bool = False


class Answered(_Line, frozen=True, tag="answered"):
    """The endpoint answered; from here on it said the same until the next line."""

    status: int
    headers: Mapping[str, str] = {}
    body: str = ""
    base64: bytes = b""
    """The body, if it is not UTF-8."""

    @property
    def content(self) -> bytes:
        return self.base64 or self.body.encode()


class Unanswered(_Line, frozen=True, tag="unanswered"):
    """A request got no answer; from here on none did until the next line."""

    loss: str
    """`unreached`, `timed_out`, `broken` or `oversized`."""
    reason: str = ""
    """Empty in an anonymous recording."""


class Stopped(_Line, frozen=True, tag="stopped"):
    """Recording was stopped; until the next `began` no one looked."""


Outcome = Answered | Unanswered
Entry = Began | Answered | Unanswered | Stopped

_decoder: Final = msgspec.json.Decoder(Entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    began: Began
    """The first of them."""
    vm: str = ""
    """The VM that read it; empty if the endpoint never said."""
    outcomes: tuple[Outcome, ...] = ()
    """In their order."""
    length: int = 0
    """Bytes of whole lines. A line that was cut off comes after them."""


def encode(entry: Entry) -> bytes:
    return msgspec.json.encode(entry) + b"\n"


def decode(content: bytes) -> Recording:
    """Raises RecordingError."""
    whole = content[: content.rfind(b"\n") + 1]
    entries = list(_entries(whole))
    began = [entry for entry in entries if isinstance(entry, Began)]
    if not began or began[0] is not entries[0]:
        raise RecordingError("this is not a recording: its first line is not the beginning of one")
    return Recording(
        began=began[0],
        vm=next((each.vm for each in began if each.vm), ""),
        outcomes=tuple(one for one in entries if isinstance(one, Answered | Unanswered)),
        length=len(whole),
    )


def _entries(whole: bytes) -> Iterator[Entry]:
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            entry = _decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RecordingError(f"line {number} can't be read: {error}") from error
        if isinstance(entry, Began) and entry.recording > VERSION:
            raise RecordingError(
                f"line {number} is in version {entry.recording} of this format, and this program"
                f" reads up to {VERSION}: use a newer Forewarned"
            )
        if entry.at.tzinfo is None:
            raise RecordingError(f"line {number} has an instant without a UTC offset")
        yield entry
