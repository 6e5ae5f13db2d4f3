"""Takes over a data directory that was made under the product's old name.

Invariant: whatever moment the move is cut off at, the next start completes it, and the database is
never opened without its write-ahead log.
"""

import logging
from pathlib import Path
from typing import Final

from forewarned.security.state_directory import DATABASE
from forewarned.storage.errors import CannotTakeOverError
from forewarned.storage.sqlite.lock import sole_use

_log = logging.getLogger(__name__)

_OLD_DATABASE: Final = "notbefore.db"
_OLD_DIRECTORY: Final = ".notbefore"
# The database goes last: as long as it has its old name, the move is not complete.
_PARTS: Final = ("-wal", "-shm", ".lock", ".mark", ".origin", "")


def take_over(data: Path, *, default: Path) -> None:
    """Rename the old directory and the old database in it, if they are there.

    Raises CannotOpenError. Only the default directory had a name that has changed; any other is
    used where it is.
    """
    old = data.with_name(_OLD_DIRECTORY)
    is_elsewhere = data == default and not data.exists() and (old / _OLD_DATABASE).exists()
    folder = old if is_elsewhere else data
    if not (folder / _OLD_DATABASE).exists() or (folder / DATABASE).exists():
        return
    try:
        with sole_use(folder / _OLD_DATABASE):
            if is_elsewhere:
                folder = old.rename(data)
            for part in _PARTS:
                _move(folder / f"{_OLD_DATABASE}{part}", folder / f"{DATABASE}{part}")
    except OSError as error:
        raise CannotTakeOverError(folder, error.strerror or str(error)) from error
    _log.info(
        "took over a data directory that was made under the product's old name",
        extra={"directory": str(data), "was": str(old if is_elsewhere else data)},
    )


def _move(old: Path, new: Path) -> None:
    if old.exists():
        old.rename(new)
