"""One server to a database: a lock that the kernel drops when its holder dies, however it dies."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from forewarned.storage.errors import StoreInUseError, UnwritableDirectoryError


@contextlib.contextmanager
def sole_use(path: Path) -> Iterator[None]:
    """Hold `<path>.lock`, which says who holds it. The file stays: removing it would be a race."""
    # Two names of one file must come to one lock.
    path = path.resolve()
    lock = path.with_name(f"{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.touch(mode=0o600)
        file = lock.open("a+")
    except OSError as error:
        raise UnwritableDirectoryError(path.parent, error.strerror or str(error)) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise StoreInUseError(path, file.read().strip()) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
