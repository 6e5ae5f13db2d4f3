"""How PostgreSQL finds what it is asked for."""

from collections.abc import Sequence

from typing_extensions import override

from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.postgres.snapshot import PostgresSnapshot
from forewarned.storage.relational.database import Parameters
from forewarned.storage.relational.publishing import outbox
from forewarned.storage.rows import FoundRow
from tests.builders import NOON, A, a_scope, an_event
from tests.postgresql.databases import Database
from tests.storage.postgres.attempts import do
from tests.storage.questions import ask_for_a_few_rows
from tests.storage.store_calls import settle_in


class Explained(PostgresDatabase):
    """Notes the plan of every question."""

    plans: tuple[str, ...] = ()

    @override
    def ask(self, sql: str, values: Parameters = ()) -> Sequence[FoundRow]:
        self.plans += tuple(line for [line] in super().ask(f"EXPLAIN {sql}", values))
        return super().ask(sql, values)


def test_no_question_goes_through_a_whole_table_to_find_a_few_rows(database: Database) -> None:
    do(database, lambda tx: settle_in(tx, a_scope(an_event(A))))
    with database.connect() as connection:
        # The tables of a test are so small that PostgreSQL reads them whole, if it may.
        connection.execute("SET LOCAL enable_seqscan = off")
        explained = Explained(connection)
        ask_for_a_few_rows(PostgresSnapshot(explained, NOON))

    # `store` has one row.
    scans = [line for line in explained.plans if "Seq Scan on" in line and "on store" not in line]
    assert scans == []
    for index in ("scopes_by_folded", "declarations_pkey", "events_open", "resources_by_host"):
        assert [line for line in explained.plans if index in line] != []


def test_messages_of_a_scope_that_wait_are_found_without_reading_all_that_wait(
    database: Database,
) -> None:
    """VMs are removed while thousands may be waiting, and each removal asks."""
    with database.connect() as connection:
        connection.execute("SET LOCAL enable_seqscan = off")
        explained = Explained(connection)
        outbox.place_waiting(explained, a_scope().id, {})

    assert "Index Cond: (scope_id = 'scope1'::text)" in [line.strip() for line in explained.plans]
