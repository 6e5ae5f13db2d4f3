"""The stores of scopes, events and their history.

Two stores behind one port, `service.ports.Store`, under one contract suite. What a save writes is
decided once for both, in `diff`. Nothing outside this package knows SQL.
"""

from forewarned.storage.memory import MemoryStore
from forewarned.storage.sqlite.store import SqliteStore

__all__ = ["MemoryStore", "SqliteStore"]
