"""Where scopes, events and their history are kept.

Two stores behind one port, `service.ports.Store`, under one contract suite. What a save writes is
decided once, in `delta`, for both. Nothing outside this package knows SQL.
"""

from forewarned.storage.memory import MemoryStore
from forewarned.storage.sqlite.store import SqliteStore

__all__ = ["MemoryStore", "SqliteStore"]
