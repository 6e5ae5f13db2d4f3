"""What SQLite is asked to tell operators at a glance: `core.attention` in its own words.

Instants and spans are microseconds, as in all tables.
"""

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from forewarned.service.attention import GRACE, SOON, UNKNOWN_IMPACT, Attention
from forewarned.service.records import Summary
from forewarned.storage.rows import micros

# In order of `Attention`. Only open events have these statuses: what is said of `ended_at` is for
# the partial index.
CONDITIONS: Final[Mapping[Attention, str]] = {
    Attention.SOON: "ended_at IS NULL AND status = 'Scheduled' AND not_before <= :soon",
    Attention.HELD: "ended_at IS NULL AND status = 'Scheduled' AND approved_at IS NOT NULL",
    Attention.OVERDUE: (
        "ended_at IS NULL AND status = 'Started'"
        " AND started_at + coalesce(duration, :unknown_impact) < :late"
    ),
}
URGENT: Final = (
    "ended_at DESC NULLS FIRST, status = 'Started',"
    " CASE status WHEN 'Started' THEN started_at WHEN 'Scheduled' THEN not_before END, sequence"
)
IS_ON_HOST: Final = """EXISTS (
    SELECT 1 FROM json_each(events.resources) AS named
    JOIN resources AS vm ON vm.folded = fold(named.value)
    WHERE vm.host = :host
)"""
IS_UNREAD: Final = (
    "NOT active AND EXISTS (SELECT 1 FROM resources WHERE resources.scope_id = scopes.id)"
)
_AFFECTED: Final = """
    FROM events, json_each(events.resources) AS named
    JOIN resources AS vm ON vm.folded = fold(named.value)
    WHERE events.ended_at IS NULL
"""


def instants(now: datetime) -> dict[str, int]:
    """What the conditions compare with."""
    return {
        "soon": micros(now + SOON),
        "late": micros(now - GRACE),
        "unknown_impact": micros(UNKNOWN_IMPACT),
    }


def summary(connection: sqlite3.Connection, now: datetime) -> Summary:
    counts = ", ".join(f"count(*) FILTER (WHERE {each})" for each in CONDITIONS.values())
    soon, held, overdue = connection.execute(
        f"SELECT {counts} FROM events WHERE ended_at IS NULL", instants(now)
    ).fetchone()
    [unread] = connection.execute(f"SELECT count(*) FROM scopes WHERE {IS_UNREAD}").fetchone()
    [hosts] = connection.execute(f"SELECT count(DISTINCT vm.host) {_AFFECTED}").fetchone()
    return Summary(soon=soon, held=held, overdue=overdue, unread_scopes=unread, hosts=hosts)
