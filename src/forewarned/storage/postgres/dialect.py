"""How PostgreSQL spells what SQLite spells differently, and how it writes many rows at once."""

from collections.abc import Collection
from datetime import timedelta
from functools import cache
from typing import Final

from forewarned.storage.relational.database import Dialect, Parameter
from forewarned.storage.relational.statements import BIND_RESOURCE, MOVE_SCOPE, Statement

NOW: Final = "floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
"""The database's clock, as instants are stored."""
_NUMBERS: Final = frozenset(
    {
        *("revision", "incarnation", "active", "last_read_at", "next_wake"),
        *("position", "update_domain", "fault_domain", "terminate_notice"),
        *("created_at", "duration", "announced", "ended_at", "not_before"),
        *("approved_at", "approved_by_policy", "started_at", "at"),
        *("attempt", "claimable_at", "begun_at"),
        *("number", "history_id"),
    }
)
"""The columns that hold no text."""
_MARKING: Final = (MOVE_SCOPE, BIND_RESOURCE)
"""Statements that other nodes have to hear of. Every save moves its scope."""


class PostgresDialect:
    join_in_order = "JOIN"
    for_update = "FOR UPDATE"
    unlocked = "FOR UPDATE SKIP LOCKED"
    differs_from = "IS DISTINCT FROM"
    # Revisions too: a Board that still shows a lost page must take the one that is left for newer.
    counters = """revision + (SELECT incarnation_offset FROM store) AS revision,
                  incarnation + (SELECT incarnation_offset FROM store) AS incarnation"""
    # Numbers are given out while a transaction runs, which is a few seconds at most.
    disorder_of_history = timedelta(minutes=1)

    def several(self, values: Collection[str] | Collection[int]) -> Parameter:
        # Enumerations and new types of strings are strings to PostgreSQL.
        return [value if isinstance(value, int) else str(value) for value in values]  # type: ignore[return-value]  # all of one type

    def among(self, column: str, placeholder: str) -> str:
        return f"{column} = ANY({placeholder})"

    def indexed_by(self, index: str) -> str:  # noqa: ARG002  # PostgreSQL knows what its tables hold
        return ""

    def begins(self, column: str, placeholder: str) -> str:
        # Columns of names are in COLLATE "C", where PostgreSQL finds them by an index from 15 on.
        return f"{column} ^@ {placeholder}"

    def place_of(self, placeholder: str, column: str) -> str:
        return f"strpos({column}, {placeholder})"

    def fold(self, name: str) -> str:
        # VMs have names in ASCII (`service.fleet.validation`), for which this is `diff.fold`.
        return f'lower({name} COLLATE "C")'

    def each_of(self, column: str, alias: str) -> str:
        return f"json_array_elements_text({column}::json) AS {alias}(value)"

    def field_of(self, column: str, name: str) -> str:
        return f"{column}::json ->> '{name}'"


POSTGRES: Final[Dialect] = PostgresDialect()


@cache
def in_bulk(statement: Statement) -> str:
    """One statement for any number of rows, with a list of the values of each column."""
    names = (*statement.columns, *statement.key)
    lists = ", ".join(f"%b::{'bigint' if name in _NUMBERS else 'text'}[]" for name in names)
    values = [_stored(name) for name in statement.columns]
    if not statement.key:
        # Rows are numbered in the order in which they are added.
        return (
            f"INSERT INTO {statement.table} ({', '.join(names)}) SELECT {', '.join(values)}"
            f" FROM unnest({lists}) WITH ORDINALITY AS new({', '.join(names)}, place)"
            " ORDER BY place"
        )
    news = [f"{name} = {value}" for name, value in zip(statement.columns, values, strict=True)]
    if statement in _MARKING:
        news.append("changed = pg_current_xact_id()")
    wanted = [f"{statement.table}.{name} = new.{name}" for name in statement.key]
    return (
        f"UPDATE {statement.table} SET {', '.join(news)}"
        f" FROM unnest({lists}) AS new({', '.join(names)})"
        f" WHERE {' AND '.join(wanted)}"
    )


def _stored(name: str) -> str:
    if name in {"revision", "incarnation"}:
        # As they are shown there, without what this store adds here.
        return f"new.{name} - (SELECT incarnation_offset FROM store)"
    return f"new.{name}"
