"""What one durable commit costs on this disk: the floor under every durable answer."""

import sqlite3
import time
from pathlib import Path


class Ledger:
    """A table of a SQLite store as the server keeps its own: WAL, synchronous=FULL."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS facts (id INTEGER PRIMARY KEY, t)")

    def commit(self) -> float:
        """Seconds it took to make one row durable."""
        started = time.perf_counter()
        self._connection.execute("INSERT INTO facts (t) VALUES (?)", ("x" * 200,))
        return time.perf_counter() - started

    def close(self) -> None:
        self._connection.close()
