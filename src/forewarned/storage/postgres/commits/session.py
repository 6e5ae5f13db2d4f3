"""One connection that outlives failures: lost, it is opened again when it is next needed."""

import contextlib
import threading
import time
from typing import Final
from weakref import WeakSet

import psycopg

from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.errors import CannotOpenError, ReplacedServerError
from forewarned.storage.postgres.connection import connect, host_of, warnings_of
from forewarned.storage.postgres.epoch import EpochCheck
from forewarned.storage.postgres.server_connection import ServerConnection
from forewarned.storage.postgres.url import Target

_REST: Final = 0.25
"""Seconds after a failed attempt in which the store does not try to connect again."""

SILENCE: Final = 10.0
"""Seconds. PostgreSQL ends every statement of a writing transaction earlier, but for a commit."""
_CHECK_SILENCE: Final = 60.0
"""Raising the incarnations of a large fleet takes long."""


class Connector:
    """Opens the connections of one store.

    Invariant: once one of them has found that another server has taken over, those to the server
    before it are lost.
    """

    def __init__(self, target: Target, check: EpochCheck | None = None) -> None:
        """`check` is shown each new connection before anything else is done with it."""
        self._target = target
        self._check = check
        self._failure = ""
        self._failed_at = -_REST
        self._lock = threading.Lock()
        self._opened: WeakSet[ServerConnection] = WeakSet()
        self._epoch = 0
        self._host: str | None = None
        """That of the last connection, of several: those before it may take long to fail."""

    def connect(self, *, longest_silence: float = SILENCE) -> ServerConnection:
        """Raises StoreUnavailableError: at once, if another thread has just tried in vain."""
        if time.monotonic() < self._failed_at + _REST:
            raise StoreUnavailableError(self._failure)
        try:
            connection = self._connect()
        except CannotOpenError as error:
            self._failure = str(error)
            self._failed_at = time.monotonic()
            raise
        connection.longest_silence = longest_silence
        return connection

    def _connect(self) -> ServerConnection:
        if self._host is not None:
            with contextlib.suppress(CannotOpenError):
                return self._checked(connect(self._target, host=self._host))
            self._host = None
        try:
            connection = self._checked(connect(self._target))
        except ReplacedServerError:
            if not self._target.hosts:
                raise
            # Its successor may be one of the others.
            connection = self._successor()
        self._host = host_of(connection, self._target)
        return connection

    def _successor(self) -> ServerConnection:
        failures: list[CannotOpenError] = []
        for host in self._target.hosts:
            try:
                return self._checked(connect(self._target, host=host))
            except CannotOpenError as error:
                failures.append(error)
        raise failures[0]

    def _checked(self, connection: ServerConnection) -> ServerConnection:
        if self._check is None:
            return connection
        connection.longest_silence = _CHECK_SILENCE
        try:
            connection.epoch = self._check(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, psycopg.Error):
                raise CannotOpenError(f"can't use {self._target.where}: {error}") from error
            raise
        self._cut_earlier(connection)
        return connection

    def _cut_earlier(self, connection: ServerConnection) -> None:
        with self._lock:
            self._opened.add(connection)
            if connection.epoch != self._epoch:
                self._epoch = max(self._epoch, connection.epoch)
                for each in self._opened:
                    if each.epoch < self._epoch:
                        each.cut()


class Session:
    def __init__(self, connector: Connector, *, longest_silence: float = SILENCE) -> None:
        self._connector = connector
        self._longest_silence = longest_silence
        self._connection: ServerConnection | None = None
        self.warnings: list[str] = []
        """Of this connection, since it was last asked for."""

    def connection(self) -> ServerConnection:
        """Outside of any transaction. Raises StoreUnavailableError."""
        self.roll_back()
        if self._connection is None:
            self._connection = self._connector.connect(longest_silence=self._longest_silence)
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
