"""A file that a load balancer's health check looks for: present, or absent, while draining.

Invariant: the file is changed in one step, and put back only if it is still as the agent left it. A
file that another program has made, or made again, is left alone.
"""

import base64
import os
import stat
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta
from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import UndoableTable
from forewarned.agent.hooks.templates import check_template, fill
from forewarned.agent.model import Phase
from forewarned.security.files import replace_file
from forewarned.targets.errors import TargetError

_LARGEST: Final = 64 * 1024
"""A file that is to be put back has to fit into the journal."""


class While(StrEnum):
    PRESENT = "present"
    ABSENT = "absent"


class FlagHook(UndoableTable, frozen=True, kw_only=True):
    """Creates or removes a file that nginx, or a load balancer's health check, looks for."""

    path: str
    """The file's absolute path."""
    draining: While = While.PRESENT
    """Whether the file is `present` or `absent` while this VM is draining."""
    content: str = "{event_id}\n"
    """The content of a file that is created, with placeholders."""
    mode: Annotated[str, Meta(pattern="^0?[0-7]{3}$")] = "0644"
    """The mode of a file that is created, in octal digits."""

    def __post_init__(self) -> None:
        if not self.path.startswith("/") or self.path.endswith("/") or "\0" in self.path:
            raise ValueError(f"{self.path!r} is not the absolute path of a file")
        check_template(self.content)

    @property
    @override
    def targets(self) -> frozenset[str]:
        return frozenset({f"file {self.path}"})

    @property
    def _file(self) -> Path:
        return Path(self.path)

    @override
    async def run(self, call: Call) -> str:
        try:
            if self.draining is While.PRESENT:
                return self._make(call)
            return self._remove(call)
        except OSError as error:
            raise _refused(self._file, error) from error

    @override
    async def put_back(self, call: Call) -> str:
        notes = call.notes
        try:
            if "made" in notes:
                return self._unmake(notes["made"].encode())
            if "removed" in notes:
                return self._make_again(notes)
        except OSError as error:
            raise _refused(self._file, error) from error
        return "nothing was changed"

    @override
    async def check(self) -> list[str]:
        folder = self._file.parent
        if not folder.is_dir():
            return [f"there is no directory {folder}"]
        if not os.access(folder, os.W_OK | os.X_OK):
            return [f"the agent is not allowed to create or remove files in {folder}"]
        if self._file.exists() and not self._file.is_file():
            return [f"{self._file} is not a file"]
        return []

    @override
    def describe(self, phase: Phase) -> str:
        if phase is Phase.UNDO:
            return f"put {self._file} back as it was"
        word = "create" if self.draining is While.PRESENT else "remove"
        return f"{word} {self._file}"

    def _make(self, call: Call) -> str:
        if "made" not in call.notes and self._file.exists():
            return f"{self._file} already exists, and is left as it is"
        content = fill(self.content, call)
        call.save_notes({"made": content})
        _write(self._file, content.encode(), mode=int(self.mode, 8))
        return f"created {self._file}"

    def _remove(self, call: Call) -> str:
        try:
            content, status = _read(self._file)
        except FileNotFoundError:
            return f"{self._file} does not exist, so there is nothing to remove"
        call.save_notes(
            {
                "removed": base64.b64encode(content).decode(),
                "mode": f"{stat.S_IMODE(status.st_mode):o}",
                "owner": f"{status.st_uid}:{status.st_gid}",
            }
        )
        self._file.unlink(missing_ok=True)
        return f"removed {self._file}"

    def _unmake(self, content: bytes) -> str:
        try:
            found, _ = _read(self._file)
        except FileNotFoundError:
            return f"{self._file} is gone already"
        if found != content:
            return f"{self._file} was changed in the meantime, and is left as it is"
        self._file.unlink(missing_ok=True)
        return f"removed {self._file}"

    def _make_again(self, notes: Mapping[str, str]) -> str:
        if self._file.exists():
            return f"{self._file} already exists again"
        user, _, group = notes["owner"].partition(":")
        _write(
            self._file,
            base64.b64decode(notes["removed"]),
            mode=int(notes["mode"], 8),
            owner=(int(user), int(group)),
        )
        return f"put {self._file} back"


def _read(path: Path) -> tuple[bytes, os.stat_result]:
    # No link, and no pipe that would never end: what is removed must be what was read.
    if sys.platform == "win32":
        file = os.open(path, os.O_RDONLY | os.O_BINARY)
    else:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise TargetError(f"{path} is not a file")
        content = os.read(file, _LARGEST + 1)
    finally:
        os.close(file)
    if len(content) > _LARGEST:
        raise TargetError(
            f"{path} has more than {_LARGEST} bytes, so the agent could not put it back"
        )
    return content, status


def _write(path: Path, content: bytes, *, mode: int, owner: tuple[int, int] | None = None) -> None:
    def adjust(file: int) -> None:
        if sys.platform != "win32":
            if owner is not None and owner != (os.geteuid(), os.getegid()):
                os.fchown(file, *owner)
            os.fchmod(file, mode)

    replace_file(path, content, adjust=adjust)


def _refused(path: Path, error: OSError) -> TargetError:
    return TargetError(f"can't change {path}: {error.strerror}")
