"""The stores that `forewarned store copy` names: a data directory, a database file, or a URL."""

from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path

from forewarned.cli.failures import RefusedError
from forewarned.config.values import DatabaseUrl
from forewarned.security.state_directory import DATABASE
from forewarned.storage.transfer import sqlite_end
from forewarned.storage.transfer.tables import Source, Target


def opened_source(name: str) -> AbstractContextManager[Source]:
    """Raises StoreUnavailableError, RefusedError."""
    if "://" not in name:
        return sqlite_end.opened_source(_database(name))
    url = _url(name)
    from forewarned.storage.transfer import postgres_end  # may not be installed

    return postgres_end.opened_source(url)


def opened_target(name: str) -> AbstractContextManager[Target]:
    """Raises StoreUnavailableError, RefusedError."""
    if "://" not in name:
        return sqlite_end.opened_target(_database(name))
    url = _url(name)
    from forewarned.storage.transfer import postgres_end  # may not be installed

    return postgres_end.opened_target(url)


def _database(name: str) -> Path:
    path = Path(name).absolute()
    return path if path.suffix == Path(DATABASE).suffix else path / DATABASE


def _url(name: str) -> DatabaseUrl:
    if find_spec("psycopg") is None:
        raise RefusedError(
            "PostgreSQL's client is not installed",
            "Install it: pip install 'forewarned[postgres]'; in a clone, '.[postgres]'",
            code="no_postgres",
        )
    from forewarned.storage.postgres.url import target  # see above

    try:
        url = DatabaseUrl.parse(name)
        target(url)
    except ValueError as error:
        raise RefusedError(
            f"a store is a data directory or the URL of a database: {error}", code="bad_store"
        ) from error
    return url
