"""One connection that outlives failures: lost, it is opened again when it is next needed."""

import contextlib
import time
from collections.abc import Callable
from typing import Final

import psycopg

from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.errors import CannotOpenError
from forewarned.storage.postgres.connection import Connection, connect, warnings_of
from forewarned.storage.postgres.url import Target

_REST: Final = 0.25
"""Seconds after a failed attempt in which the store does not try to connect again."""

Check = Callable[[Connection], None]
"""Refuses a new connection, before anything else is done with it. Raises CannotOpenError."""


class Connector:
    """Opens the connections of one store."""

    def __init__(self, target: Target, check: Check | None = None) -> None:
        self.target = target
        self.check = check
        self._failure = ""
        self._failed_at = -_REST

    def connect(self) -> Connection:
        """Raises StoreUnavailableError: at once, if another thread has just tried in vain."""
        if time.monotonic() < self._failed_at + _REST:
            raise StoreUnavailableError(self._failure)
        try:
            connection = connect(self.target)
            if self.check is not None:
                _check(connection, self.check, self.target.where)
        except CannotOpenError as error:
            self._failure = str(error)
            self._failed_at = time.monotonic()
            raise
        return connection


class Session:
    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._connection: Connection | None = None
        self.warnings: list[str] = []
        """Of this connection, since it was last asked for."""

    def connection(self) -> Connection:
        """Outside of any transaction. Raises StoreUnavailableError."""
        self.roll_back()
        if self._connection is None:
            self._connection = self._connector.connect()
            self.warnings = warnings_of(self._connection)
        self.warnings.clear()
        return self._connection

    @property
    def is_lost(self) -> bool:
        return self._connection is None or self._connection.closed

    def roll_back(self) -> None:
        if self._connection is None:
            return
        with contextlib.suppress(psycopg.Error):
            self._connection.rollback()
        if self._connection.closed:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def _check(connection: Connection, check: Check, where: str) -> None:
    try:
        check(connection)
        connection.commit()
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise CannotOpenError(f"can't use {where}: {error}") from error
        raise
