"""Files that hold what must not leak, tear or be used twice: private, replaced whole, locked.

Invariants: a file is never readable by more users than it will be in the end; readers find the old
content or the new, never a part of it; and what `replace_file` has written survives a power loss.
"""

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600
PRIVATE_FOR_GOOD: Final = 0o400
"""Not even its owner writes it again."""
PRIVATE_DIRECTORY: Final = 0o700
PUBLIC: Final = 0o666
"""As open to others as the umask allows."""
CERTIFICATE: Final = 0o644
"""Never writable by others, even where the umask would allow it."""

# A younger draft may be another process's that is at work on the same file.
_ABANDONED_AFTER: Final = 60.0


class InUseError(Exception):
    """Another process has the lock."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"in use by process {holder}" if holder else "in use by another process")
        self.holder = holder
        """Its process id; empty where it is not known."""


def private_directory(folder: Path) -> None:
    """Make the directory, if there is none. Raises OSError.

    Its parents are made too, as open as the umask allows. One that exists is left as it is.
    """
    folder.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)


def open_private(path: Path, flags: int, *, mode: int = PRIVATE) -> int:
    """The descriptor of the file, which is made if there is none. Raises OSError.

    No program that this one starts inherits it.
    """
    return os.open(path, flags | os.O_CREAT, mode)


def replace_file(
    path: Path,
    content: bytes,
    *,
    mode: int = PRIVATE,
    adjust: Callable[[int], None] = lambda _: None,
) -> None:
    """Write the file in one step. Returns once it is on disk. Raises OSError.

    `adjust` is given the descriptor before the file takes its place, to set its owner or mode.
    Drafts that a crash left behind are removed by the next write a minute later or more.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        try:
            if os.write(file, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            adjust(file)
            os.fsync(file)
        finally:
            os.close(file)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    _remove_abandoned_drafts(path)
    flush_directory(path.parent)


def _remove_abandoned_drafts(path: Path) -> None:
    """Those that are older than the file, which was just written."""
    draft = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}")
    # A directory that can't be listed, or a draft of another user's, must not fail the write.
    with suppress(OSError):
        abandoned = path.lstat().st_mtime - _ABANDONED_AFTER
        for found in path.parent.iterdir():
            with suppress(OSError):
                if draft.fullmatch(found.name) and found.lstat().st_mtime < abandoned:
                    found.unlink()


def flush_file(path: Path) -> None:
    """Have its content on disk, whatever wrote it. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def flush_directory(folder: Path) -> None:
    """Have the names in it on disk, as far as that can be done.

    Some network file systems can't do it for a directory, and a user who may write in a directory
    may not be allowed to read it.
    """
    try:
        file = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(file)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock file, and hold it. Raises OSError."""
    with _lock_file(path) as file:
        _flock(file, waits=True)
        yield


@contextmanager
def locked_or_refused(path: Path) -> Iterator[None]:
    """Hold the lock file, which then names this process. Raises InUseError and OSError.

    The kernel drops the lock when its holder dies, however that happens.
    """
    with _lock_file(path) as file:
        try:
            _flock(file)
        except BlockingIOError as error:
            holder = os.pread(file, 32, 0).decode(errors="replace").strip()
            raise InUseError(holder) from error
        os.truncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        yield


@contextmanager
def inheritable_lock(path: Path) -> Iterator[int]:
    """Hold the lock file. A program that is given its descriptor holds it for as long as it runs.

    Raises BlockingIOError where it is held, and OSError.
    """
    with _lock_file(path) as file:
        _flock(file)
        yield file


@contextmanager
def locked_directory(folder: Path) -> Iterator[None]:
    """Hold a lock on the directory itself. Raises OSError if another process holds it.

    Some network file systems can't lock a directory.
    """
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _flock(file)
        yield
    finally:
        os.close(file)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file. Raises OSError."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        # Shared: two that look at the same time don't take each other for the holder.
        _flock(file, shared=True)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def lock_holder(path: Path) -> str | None:
    """What the lock file says of the process that holds it; None if none does."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        _flock(file)
    except BlockingIOError:
        return os.pread(file, 32, 0).decode(errors="replace").strip()
    finally:
        os.close(file)
    return None


@contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    # It stays when the lock is released: removing it would be a race. A program that inherited the
    # descriptor would hold the lock for as long as it runs.
    file = open_private(path, os.O_RDWR)
    try:
        yield file
    finally:
        os.close(file)


def _flock(file: int, *, waits: bool = False, shared: bool = False) -> None:
    # Here, because Windows has none, and an agent's rehearsal runs there and locks nothing.
    import fcntl  # noqa: PLC0415

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    fcntl.flock(file, kind if waits else kind | fcntl.LOCK_NB)


def fingerprint(path: Path) -> tuple[int, ...]:
    """Differs whenever the file does. Empty for no file."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino
