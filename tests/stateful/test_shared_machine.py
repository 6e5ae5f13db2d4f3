"""The same machine on a PostgreSQL that several nodes use."""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.postgresql.databases import Database, Databases
from tests.stateful.machine import ScheduledEvents
from tests.stateful.shared_stack import SharedStack

EXAMPLES = 6
STEPS = 30


def test_the_laws_hold_on_a_store_that_several_nodes_share(
    databases: Databases, migrated_template: Database
) -> None:
    class Here(SharedStack):
        pass

    Here.databases, Here.template = databases, migrated_template

    class InPostgres(ScheduledEvents):
        stack_type = Here

    is_thorough = settings.get_current_profile_name() in {"thorough", "mutants"}
    short = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(InPostgres, settings=settings() if is_thorough else short)
