"""The same machine on every store."""

from tests.effort import few
from tests.stateful.machine import ScheduledEvents
from tests.stateful.stack import MemoryStack, SqliteStack


class InMemory(ScheduledEvents):
    stack_type = MemoryStack


class InSqlite(ScheduledEvents):
    stack_type = SqliteStack


TestInMemory = InMemory.TestCase
TestInMemory.settings = few(20, steps=40)
TestInSqlite = InSqlite.TestCase
TestInSqlite.settings = few(15, steps=40)
