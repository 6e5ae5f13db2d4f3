"""The archive that a kernel unpacks as its first file system: cpio, in the form `newc`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_FOLDER: Final = 0o040755
_PROGRAM: Final = 0o100755
_CHARACTERS: Final = 0o020600


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def folder(name: str) -> Entry:
    return Entry(name=name, mode=_FOLDER)


def program(name: str, content: bytes) -> Entry:
    return Entry(name=name, mode=_PROGRAM, content=content)


def character_device(name: str, major: int, minor: int) -> Entry:
    """Written here rather than made on this machine."""
    return Entry(name=name, mode=_CHARACTERS, device=(major, minor))


def packed(entries: Iterable[Entry]) -> bytes:
    end = Entry(name="TRAILER!!!", mode=0)
    return b"".join(_parts([*entries, end]))


def _parts(entries: list[Entry]) -> Iterator[bytes]:
    for number, entry in enumerate(entries, 1):
        name = entry.name.encode() + b"\0"
        major, minor = entry.device
        fields = (number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, major, minor)
        header = b"070701" + b"".join(b"%08X" % field for field in (*fields, len(name), 0))
        yield _aligned(header + name)
        yield _aligned(entry.content)


def _aligned(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
