"""The tables that a copy takes along, and what the two ends of it have to offer.

What belongs to one place stays there: the marks of restores, and what nodes say of themselves.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from forewarned.service import restoration
from forewarned.storage.history.chain import CHAINED
from forewarned.storage.history.positions import ORIGIN, REMOVED
from forewarned.storage.relational.snapshot import UNFINISHED
from forewarned.storage.rows import Value

Cells = tuple[Value, ...]


class Table(NamedTuple):
    name: str
    key: tuple[str, ...]
    others: tuple[str, ...]
    only: str = "true"
    """Which rows are copied, in SQL."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The key comes first."""
        return (*self.key, *self.others)

    @property
    def counting(self) -> str:
        return f"SELECT count(*) FROM {self.name} WHERE {self.only}"

    @property
    def last(self) -> str:
        """A question for the key of the last row."""
        order = ", ".join(f"{name} DESC" for name in self.key)
        columns = ", ".join(self.key)
        return f"SELECT {columns} FROM {self.name} WHERE {self.only} ORDER BY {order} LIMIT 1"

    def page(self, columns: str, *, after: bool) -> str:
        """A question for the next rows in the order of the key, with `?` for values."""
        key = ", ".join(self.key)
        following = f"AND ({key}) > ({', '.join('?' * len(self.key))})" if after else ""
        return (
            f"SELECT {columns} FROM {self.name} WHERE {self.only} {following}"
            f" ORDER BY {key} LIMIT ?"
        )


_STAY: Final = ", ".join(
    f"'{key}'" for key in (UNFINISHED, ORIGIN, restoration.OFFSET, CHAINED, REMOVED)
)
"""Notes that are not copied: each end has its own."""

# In this order, because VMs and events refer to their scopes, deliveries to their messages.
TABLES: Final = (
    Table(
        "scopes",
        ("number",),
        (
            *("id", "folded", "kind", "revision", "incarnation", "active", "last_read_at"),
            *("next_wake", "policy", "rounds"),
        ),
    ),
    Table(
        "resources",
        ("folded",),
        (
            *("name", "scope_id", "position", "update_domain", "fault_domain", "host", "state"),
            *("priority", "eviction_policy", "terminate_notice", "address", "profile", "actuator"),
        ),
    ),
    Table("former_scopes", ("folded", "scope_id"), ()),
    Table(
        "events",
        ("sequence",),
        (
            *("id", "scope_id", "type", "status", "source", "resources", "created_at"),
            *("not_before", "description", "duration", "announced", "approved_by", "approved_at"),
            *("approved_by_policy", "maintenance", "started_at", "start_cause", "ended_at"),
            "end_reason",
        ),
    ),
    Table(
        "tasks",
        ("event_id", "vm"),
        (
            *("scope_id", "type", "host", "actuator", "state", "attempt", "holder"),
            *("claimable_at", "begun_at", "seen_before", "seen_after", "error", "ended_at"),
        ),
    ),
    Table("drains", ("host",), ("document",)),
    Table(
        "history",
        ("id",),
        (
            *("at", "actor", "address", "action", "scope_id", "event_id", "event_type"),
            *("resources", "cause"),
        ),
    ),
    Table("history_chain", ("number",), ("history_id", "digest")),
    Table(
        "subscriptions",
        ("name",),
        (
            *("document", "delivered", "last_delivered_at", "failed", "failures"),
            *("last_failed_at", "last_error", "rests", "rests_until", "removed"),
        ),
    ),
    Table("outbox", ("number",), ("scope_id", "content")),
    Table("messages", ("number",), ("scope_id", "content")),
    Table("addressed", ("first_number",), ("last_number", "takers", "written_at")),
    # Without claims: no one is delivering anything meanwhile.
    Table(
        "deliveries",
        ("number", "subscription"),
        (
            *("scope_id", "state", "attempts", "queued_at", "tried_at", "due_at", "given_up_at"),
            "last_error",
        ),
    ),
    Table("notes", ("key",), ("value",), f"key NOT IN ({_STAY})"),
    Table(
        "declarations",
        ("folded",),
        ("path", "document", "created_at", "revision", "next_instance", "is_going"),
    ),
    Table(
        "operations",
        ("id",),
        ("path", "action", "started_at", "event_ids", "failure_code", "failure"),
    ),
)


class Source(Protocol):
    """A store that is only read. Incarnations are as VMs have seen them."""

    where: str
    """How messages call it."""

    def state(self) -> str:
        """Differs from what it was, if anything has changed since."""

    def offset(self) -> int:
        """How much of every incarnation is not counted but added, after restores."""

    def count(self, table: Table) -> int: ...

    def rows(self, table: Table, after: Cells | None, limit: int) -> list[Cells]:
        """The next rows in the order of the key; `after` is the key of the last one before."""

    def last_number(self) -> int:
        """The highest that a message ever had, wherever it is now; 0 if there was none."""


class Target(Source, Protocol):
    def unfinished(self) -> str | None:
        """The state of the source whose copy was begun here; None if none was."""

    def begin(self, state: str, *, offset: int) -> None:
        """Note that a copy is under way. Called for a store without rows."""

    def empty(self) -> None:
        """Remove what an earlier copy has left."""

    def last_key(self, table: Table) -> Cells | None:
        """The key of the last row; None if there is no row."""

    def add(self, table: Table, rows: Sequence[Cells]) -> None:
        """In one transaction."""

    def finish(self, *, last_number: int) -> None:
        """From now on servers may open it. Messages are numbered from the next number on."""
