"""The stores of scopes, events and their history.

Every store is behind one port, `service.ports.Store`, and under one contract suite. What a save
writes is decided once for all, in `diff`. Nothing outside this package knows SQL.
"""

from forewarned.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
