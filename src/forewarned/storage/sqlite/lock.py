"""One server per database: a lock that the kernel releases when its holder dies."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from forewarned.security.files import InUseError, lock_holder, locked_or_refused
from forewarned.storage.errors import StoreInUseError, UnwritableDirectoryError


def holder_of(path: Path) -> str | None:
    """The process that has the database open, without asking for it; None if none has."""
    path = path.resolve()
    return lock_holder(path.with_name(f"{path.name}.lock"))


@contextlib.contextmanager
def sole_use(path: Path) -> Iterator[None]:
    """Hold `<path>.lock`, which names the process that holds it."""
    # Two names of one file must come to one lock.
    path = path.resolve()
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked_or_refused(path.with_name(f"{path.name}.lock")))
        except InUseError as error:
            raise StoreInUseError(path, error.holder) from error
        except OSError as error:
            raise UnwritableDirectoryError(path.parent, error.strerror or str(error)) from error
        yield
