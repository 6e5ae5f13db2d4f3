"""The data directory: whether the server can keep its state there, and who else can read it."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forewarned.cli.doctor.finding import Finding, problem, warning
from forewarned.runtime.settings import Mode, Settings
from forewarned.security import state_directory

_FULL: Final = 64 << 20
"""Bytes: below it, SQLite's log alone can fill the disk."""
_NEARLY_FULL: Final = 1 << 30


def of_directory(settings: Settings) -> Iterator[Finding]:
    folder = settings.data.absolute()
    if not folder.exists():
        yield from _of_place(folder)
        return
    if not folder.is_dir():
        yield problem(
            "data_no_directory",
            where=str(folder),
            what="this is a file, and the server needs a directory",
            todo="Move the file away, or choose another directory with --data.",
        )
        return
    yield from _of_owner(folder, settings)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield problem(
            "data_unwritable",
            where=str(folder),
            what="the user who runs this command can't write there",
            todo="Run this command as the server's user, or give that user the directory with"
            " `chown -R`.",
        )
    yield from of_space(folder, shutil.disk_usage(folder).free)


def _of_place(folder: Path) -> Iterator[Finding]:
    """Where the directory would be created."""
    above = next(path for path in folder.parents if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        yield problem(
            "data_unwritable",
            where=str(folder),
            what=f"it does not exist, and can't be created in {above}",
            todo="Create it for the server's user, or choose another directory with --data.",
        )


def _of_owner(folder: Path, settings: Settings) -> Iterator[Finding]:
    found = folder.stat()
    is_service = settings.mode is Mode.SERVICE
    if is_service and found.st_mode & stat.S_ISVTX:
        yield problem(
            "data_shared",
            where=str(folder),
            what="all users of this machine share this directory",
            todo="Choose a directory for the server alone with --data.",
        )
        return
    if is_service and os.geteuid() not in {0, found.st_uid}:
        yield problem(
            "data_of_another",
            where=str(folder),
            what="the directory belongs to another user, who could change what is in it",
            todo="Run the server as that user, or give the directory to the server's user with"
            " `chown -R`.",
        )
    exposed = [path.name for path in state_directory.exposed_files(folder)]
    if is_service and stat.S_IMODE(found.st_mode) & 0o077:
        exposed.insert(0, ".")
    if exposed:
        yield warning(
            "data_open",
            where=str(folder),
            what=f"other users can read {', '.join(exposed)}",
            todo="Run `chmod -R go= DIRECTORY`. The server does so when it starts. If keys may have"
            " been read, remove them, and revoke the tokens.",
        )


def of_space(folder: Path, free: int) -> Iterator[Finding]:
    what = f"{free / (1 << 20):,.0f} MiB are free"
    todo = (
        "Free some space, or move the data directory: on a full disk, the server refuses all"
        " changes (503)."
    )
    if free < _FULL:
        yield problem("disk_full", where=str(folder), what=what, todo=todo)
    elif free < _NEARLY_FULL:
        yield warning("disk_nearly_full", where=str(folder), what=what, todo=todo)
