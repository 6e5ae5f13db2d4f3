"""The same machine on a PostgreSQL that several nodes use."""

from hypothesis.stateful import run_state_machine_as_test

from tests.effort import few
from tests.postgresql.databases import Database, Databases
from tests.stateful.machine import ScheduledEvents
from tests.stateful.shared_stack import SharedStack


def test_the_laws_hold_on_a_store_that_several_nodes_share(
    databases: Databases, migrated_template: Database
) -> None:
    class Here(SharedStack):
        pass

    Here.databases, Here.template = databases, migrated_template

    class InPostgres(ScheduledEvents):
        stack_type = Here

    run_state_machine_as_test(InPostgres, settings=few(3, steps=30))
