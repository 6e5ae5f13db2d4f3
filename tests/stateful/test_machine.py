"""The same machine on every store."""

from hypothesis import HealthCheck, settings

from tests.stateful.machine import ScheduledEvents
from tests.stateful.stack import MemoryStack, SqliteStack

EXAMPLES = 40
STEPS = 40


def _scaled() -> settings:
    """Short, unless the profile says how long to look."""
    if settings.get_current_profile_name() in {"thorough", "mutants"}:
        return settings()
    return settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


class InMemory(ScheduledEvents):
    stack_type = MemoryStack


class InSqlite(ScheduledEvents):
    stack_type = SqliteStack


TestInMemory = InMemory.TestCase
TestInMemory.settings = _scaled()
TestInSqlite = InSqlite.TestCase
TestInSqlite.settings = _scaled()
