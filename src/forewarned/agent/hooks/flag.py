"""A file that a load balancer's health check looks for: present, or absent, while draining.

Invariant: the file is changed in one step, and put back only if it is still as the agent left it. A
file that another program has made, or made again, is left alone.
"""

import base64
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta
from typing_extensions import override

from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.hooks.retries import RetryingHook
from forewarned.agent.hooks.settings import UndoableSettings
from forewarned.agent.hooks.templates import check_template, fill
from forewarned.agent.model import Phase
from forewarned.agent.targets.errors import TargetError
from forewarned.security.files import replace_file

_LARGEST: Final = 64 * 1024
"""A file that is to be put back has to fit into the journal."""


class While(StrEnum):
    PRESENT = "present"
    ABSENT = "absent"


class FlagSettings(UndoableSettings, frozen=True, kw_only=True):
    """Makes or removes a file that nginx, or a load balancer's health check, looks for."""

    path: str
    """The file's absolute path."""
    draining: While = While.PRESENT
    """Whether the file is `present` or `absent` while this VM is draining."""
    content: str = "{event_id}\n"
    """The content of a file that is made, with placeholders."""
    mode: Annotated[str, Meta(pattern="^0?[0-7]{3}$")] = "0644"
    """The mode of a file that is made, in octal digits."""

    def __post_init__(self) -> None:
        if not self.path.startswith("/") or self.path.endswith("/") or "\0" in self.path:
            raise ValueError(f"{self.path!r} is not the absolute path of a file")
        check_template(self.content)

    @property
    @override
    def targets(self) -> frozenset[str]:
        return frozenset({f"file {self.path}"})

    @override
    def make(self, name: str) -> Hook:
        return RetryingHook(_Flag(self), retries=self.retries)


@dataclass(frozen=True, slots=True)
class _Flag:
    settings: FlagSettings
    retries_undo = True

    @property
    def path(self) -> Path:
        return Path(self.settings.path)

    async def run(self, call: Call) -> str:
        try:
            if self.settings.draining is While.PRESENT:
                return self._make(call)
            return self._remove(call)
        except OSError as error:
            raise _refused(self.path, error) from error

    async def undo(self, call: Call) -> str:
        notes = call.notes
        try:
            if "made" in notes:
                return self._unmake(notes["made"].encode())
            if "removed" in notes:
                return self._put_back(notes)
        except OSError as error:
            raise _refused(self.path, error) from error
        return "nothing was changed"

    async def check(self) -> list[str]:
        folder = self.path.parent
        if not folder.is_dir():
            return [f"there is no directory {folder}"]
        if not os.access(folder, os.W_OK | os.X_OK):
            return [f"the agent may not make or remove files in {folder}"]
        if self.path.exists() and not self.path.is_file():
            return [f"{self.path} is not a file"]
        return []

    def describe(self, phase: Phase) -> str:
        if phase is Phase.UNDO:
            return f"put {self.path} back as it was"
        word = "make" if self.settings.draining is While.PRESENT else "remove"
        return f"{word} {self.path}"

    def _make(self, call: Call) -> str:
        if "made" not in call.notes and self.path.exists():
            return f"{self.path} exists already, and stays"
        content = fill(self.settings.content, call)
        call.save_notes({"made": content})
        _write(self.path, content.encode(), mode=int(self.settings.mode, 8))
        return f"made {self.path}"

    def _remove(self, call: Call) -> str:
        try:
            content, status = _read(self.path)
        except FileNotFoundError:
            return f"{self.path} does not exist, so there is nothing to remove"
        call.save_notes(
            {
                "removed": base64.b64encode(content).decode(),
                "mode": f"{stat.S_IMODE(status.st_mode):o}",
                "owner": f"{status.st_uid}:{status.st_gid}",
            }
        )
        self.path.unlink(missing_ok=True)
        return f"removed {self.path}"

    def _unmake(self, content: bytes) -> str:
        try:
            found, _ = _read(self.path)
        except FileNotFoundError:
            return f"{self.path} is gone already"
        if found != content:
            return f"{self.path} has been changed since, and stays"
        self.path.unlink(missing_ok=True)
        return f"removed {self.path}"

    def _put_back(self, notes: Mapping[str, str]) -> str:
        if self.path.exists():
            return f"{self.path} exists again already"
        user, _, group = notes["owner"].partition(":")
        _write(
            self.path,
            base64.b64decode(notes["removed"]),
            mode=int(notes["mode"], 8),
            owner=(int(user), int(group)),
        )
        return f"put {self.path} back"


def _read(path: Path) -> tuple[bytes, os.stat_result]:
    # No link, and no pipe that would never end: what is removed must be what was read.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise TargetError(f"{path} is not a file")
        content = os.read(file, _LARGEST + 1)
    finally:
        os.close(file)
    if len(content) > _LARGEST:
        raise TargetError(f"{path} has more than {_LARGEST} bytes, too many to put it back")
    return content, status


def _write(path: Path, content: bytes, *, mode: int, owner: tuple[int, int] | None = None) -> None:
    def adjust(file: int) -> None:
        if owner is not None and owner != (os.geteuid(), os.getegid()):
            os.fchown(file, *owner)
        os.fchmod(file, mode)

    replace_file(path, content, adjust=adjust)


def _refused(path: Path, error: OSError) -> TargetError:
    return TargetError(f"can't change {path}: {error.strerror}")
