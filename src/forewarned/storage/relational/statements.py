"""The statements that write what a change of a scope leaves, many rows at a time.

An UPDATE names only the columns that may have changed: SQLite would rewrite every index on the
others, and look for rows that refer to them. So columns that change often are apart from those that
hardly ever do. The values of each statement come from the function of `rows` named beside it.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """Compared by identity, because statements are looked up for every row that is written."""

    sql: str
    """For one row: with a `?` for each column, and for each of the key."""
    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """The columns that say which rows are updated; empty if rows are added."""


def _insert(table: str, *columns: str) -> Statement:
    places = ", ".join("?" for _ in columns)
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
    return Statement(sql, table, columns, ())


def _update(table: str, *columns: str, key: str | tuple[str, ...]) -> Statement:
    keys = (key,) if isinstance(key, str) else key
    news = ", ".join(f"{column} = ?" for column in columns)
    wanted = " AND ".join(f"{column} = ?" for column in keys)
    return Statement(f"UPDATE {table} SET {news} WHERE {wanted}", table, columns, keys)


_SCOPE_PLAN: Final = ("kind", "policy", "rounds")
_SCOPE_STATE: Final = ("revision", "incarnation", "active", "last_read_at", "next_wake")
# rows.new_scope
ADD_SCOPE: Final = _insert("scopes", "folded", *_SCOPE_PLAN, *_SCOPE_STATE, "id")
# rows.scope_state
MOVE_SCOPE: Final = _update("scopes", *_SCOPE_STATE, key="id")
MARK_SCOPE: Final = _update("scopes", "last_read_at", key="id")
WAKE_SCOPE: Final = _update("scopes", "next_wake", key="id")
# rows.scope_plan
PLAN_SCOPE: Final = _update("scopes", *_SCOPE_PLAN, key="id")

_RESOURCE_MODEL: Final = (
    "update_domain",
    "fault_domain",
    "host",
    "priority",
    "eviction_policy",
    "terminate_notice",
    "actuator",
)
# rows.new_resource
ADD_RESOURCE: Final = _insert(
    "resources",
    *("position", "scope_id", "name", "state", "address", "profile"),
    *_RESOURCE_MODEL,
    "folded",
)
# rows.resource_state
MOVE_RESOURCE: Final = _update("resources", "state", key="folded")
# rows.resource_model
MODEL_RESOURCE: Final = _update("resources", *_RESOURCE_MODEL, key="folded")
PLACE_RESOURCE: Final = _update("resources", "position", key="folded")
# rows.from_binding
BIND_RESOURCE: Final = _update("resources", "address", "profile", key="folded")

_EVENT_WORDS: Final = ("resources", "description", "duration", "announced")
_EVENT_STATE: Final = (
    "status",
    "not_before",
    "approved_by",
    "approved_at",
    "approved_by_policy",
    "started_at",
    "start_cause",
)
_EVENT_END: Final = ("ended_at", "end_reason", *_EVENT_STATE)
# rows.new_event
ADD_EVENT: Final = _insert(
    "events",
    "scope_id",
    "type",
    "source",
    "created_at",
    "maintenance",
    *_EVENT_WORDS,
    *_EVENT_END,
    "id",
)
# rows.event_state
MOVE_EVENT: Final = _update("events", *_EVENT_STATE, key="id")
# rows.event_words
WORD_EVENT: Final = _update("events", *_EVENT_WORDS, key="id")
# rows.event_end
END_EVENT: Final = _update("events", *_EVENT_END, key="id")

_TASK_BEGUN: Final = ("state", "attempt", "holder", "claimable_at", "begun_at")
_TASK_STATE: Final = (*_TASK_BEGUN, "seen_before", "seen_after", "error", "ended_at")
# tasks.of_change
ADD_TASK: Final = _insert(
    "tasks", "scope_id", "type", "host", "actuator", *_TASK_BEGUN, "event_id", "vm"
)
# tasks.task_state
MOVE_TASK: Final = _update("tasks", *_TASK_STATE, key=("event_id", "vm"))
CLOSE_TASK: Final = _update("tasks", "ended_at", key=("event_id", "vm"))
CLOSE_TASKS: Final = _update("tasks", "ended_at", key="event_id")

# rows.from_fact
ADD_HISTORY: Final = _insert(
    "history",
    "at",
    "actor",
    "address",
    "action",
    "scope_id",
    "event_id",
    "event_type",
    "resources",
    "cause",
)
# history.chain.append
ADD_TO_CHAIN: Final = _insert("history_chain", "number", "history_id", "digest")

# outbox.content_of
ADD_MESSAGE: Final = _insert("outbox", "scope_id", "content")

IN_ORDER: Final = (
    ADD_SCOPE,
    ADD_RESOURCE,
    PLACE_RESOURCE,
    MOVE_RESOURCE,
    MODEL_RESOURCE,
    ADD_EVENT,
    WORD_EVENT,
    MOVE_EVENT,
    END_EVENT,
    ADD_TASK,
    MOVE_TASK,
    CLOSE_TASK,
    CLOSE_TASKS,
    ADD_HISTORY,
    ADD_MESSAGE,
    PLAN_SCOPE,
    MOVE_SCOPE,
    WAKE_SCOPE,
)
"""Those that are buffered, as they are written: each row after those that it refers to."""
