"""Where a server keeps its principals: a file in its data directory, or the nodes' database."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from forewarned.cli.commands.serve import load_settings, local_settings
from forewarned.cli.failures import RefusedError
from forewarned.config.values import DatabaseUrl
from forewarned.runtime.settings import Mode
from forewarned.security import principals
from forewarned.security.identities import Principal
from forewarned.storage.errors import CannotOpenError

F = TypeVar("F", bound=Callable[..., Any])

_OWN_FILE: Final = "Nothing was changed. Fix the file, or remove it to revoke all tokens."


def store_option(function: F) -> F:
    return click.option(
        "--store",
        metavar="URL",
        help="PostgreSQL database that several nodes share, if the server is one of them"
        " [env: FOREWARNED_STORE].",
    )(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    folder: Path
    database: DatabaseUrl | None
    """None if the server has its principals in the file."""

    @property
    def file(self) -> Path:
        return self.folder / principals.FILE

    def read(self) -> Sequence[Principal]:
        """Raises RefusedError."""
        if self.database is None:
            with _refusals(_OWN_FILE):
                return principals.load(self.file)
        with self.edited() as known:
            return known

    def read_import(self, file: Path | None) -> Sequence[Principal]:
        """For the database: the server itself does not use this file. Raises RefusedError."""
        if file is not None and not file.exists():
            raise RefusedError(f"there is no file {file}", code="bad_principals", field="file")
        with _refusals("Nothing was changed. Fix the file, and run the command again."):
            return principals.load(file or self.file)

    @contextmanager
    def edited(self) -> Iterator[list[Principal]]:
        """The principals, to be changed in place. Raises RefusedError."""
        with _refusals(_OWN_FILE):
            if self.database is None:
                opened = principals.edited(self.folder)
            else:
                # Here, because it may not be installed.
                from forewarned.storage.postgres.nodes import principals as table

                opened = table.edited(self.database)
            with opened as known:
                yield known


def place_of(config: Path | None, data: str | None, store: str | None) -> Place:
    if store is None:
        settings = local_settings(config, data)
    else:
        # Only nodes in service mode share a database.
        flags = {"data": data, "control": "127.0.0.1:0", "store": store, "mode": Mode.SERVICE.value}
        settings = load_settings(config, flags).settings
    return Place(folder=settings.data, database=settings.store)


@contextmanager
def _refusals(advice: str) -> Iterator[None]:
    try:
        yield
    except principals.PrincipalsError as error:
        raise RefusedError(str(error), advice, code="bad_principals") from error
    except CannotOpenError as error:
        raise RefusedError(str(error), code="no_store") from error
