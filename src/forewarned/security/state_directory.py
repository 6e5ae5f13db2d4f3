"""The directory that a server keeps its state in, and who may look into it.

Invariant: only the server's own user can read what it writes there, certificates aside, from the
first moment on; and in service mode no other user can even list it. If other users can read
directories and files from earlier runs, the server ends that when it starts, and the log says so.
"""

import logging
import os
import pwd
import stat
from pathlib import Path
from typing import Final

from forewarned.security.files import PRIVATE_DIRECTORY

_log = logging.getLogger(__name__)

DATABASE: Final = "forewarned.db"
_OTHERS: Final = 0o077
_PRIVATE: Final = (
    "arm-ca-key.pem",
    "arm-key.pem",
    "feed-key.pem",
    "feed.sock",
    "identity-key.pem",
    f"{DATABASE}*",
    "principals.toml*",
)
"""The server's files. Other files in the directory belong to users, and are left alone."""


class StateDirectoryError(Exception):
    """The server can't keep its state there. The message says why, and what to do."""


def prepare(folder: Path) -> None:
    """Create the directory if needed, and close the server's files in it to other users."""
    _make(folder, mode=0o777)
    _close_files(folder)


def prepare_private(folder: Path) -> None:
    """The same, and close the directory to other users. Raises StateDirectoryError."""
    _make(folder, mode=PRIVATE_DIRECTORY)
    found = folder.stat()
    _refuse_shared(folder, found)
    if found.st_mode & _OTHERS:
        folder.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
        _log.warning(
            "other users could read the data directory; removed their access",
            extra={"folder": str(folder), "mode_before": f"{stat.S_IMODE(found.st_mode):04o}"},
        )
    _close_files(folder)


def _make(folder: Path, *, mode: int) -> None:
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise StateDirectoryError(
            f"can't create the directory {folder} ({error.strerror or error}): choose another one "
            "with --data"
        ) from error


def _refuse_shared(folder: Path, found: os.stat_result) -> None:
    if found.st_mode & stat.S_ISVTX:
        raise StateDirectoryError(
            f"{folder} is shared by all users of this machine: choose a directory for the server "
            "alone with --data"
        )
    user = os.geteuid()
    if found.st_uid == user:
        return
    owner = _name(found.st_uid)
    if user:
        raise StateDirectoryError(
            f"{folder} belongs to {owner}, who could read and change everything this server, "
            f"which runs as {_name(user)}, stores there: run it as {owner}, give the directory to "
            f"{_name(user)} with `chown -R`, or choose another one with --data"
        )
    # Root in a container often gets a directory of another user on the host.
    _log.warning(
        "the data directory belongs to another user, who can read and change what is in it",
        extra={"folder": str(folder), "owner": owner},
    )


def exposed_files(folder: Path) -> list[Path]:
    """The server's files that other users can read."""
    return [path for path in _private_files(folder) if _is_open(path)]


def _private_files(folder: Path) -> list[Path]:
    return [path for pattern in _PRIVATE for path in folder.glob(pattern)]


def _close_files(folder: Path) -> None:
    closed = [path.name for path in _private_files(folder) if _close(path)]
    if closed:
        _log.warning(
            "other users could read files of this server; removed their access",
            extra={"folder": str(folder), "files": " ".join(sorted(closed))},
        )


def _close(path: Path) -> bool:
    """Whether it was open to others. Files of other users are left to them."""
    found = path.lstat()
    if not _is_open(path) or os.geteuid() not in {0, found.st_uid}:
        return False
    path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
    return True


def _is_open(path: Path) -> bool:
    found = path.lstat()
    return bool(found.st_mode & _OTHERS) and not stat.S_ISLNK(found.st_mode)


def _name(user: int) -> str:
    try:
        return repr(pwd.getpwuid(user).pw_name)
    except KeyError:
        return f"user {user}"
