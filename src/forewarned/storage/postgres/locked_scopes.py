"""The scopes that a transaction has locked: no other transaction can change them until it ends.

Invariant: two transactions never wait for each other's scopes. A scope may be waited for only if
its number is above those of all scopes held. Any other is locked without waiting, or not at all:
then the function is run again, and begins by locking all that the first run wanted, in order.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from forewarned.core.ids import ScopeId
from forewarned.service.records import Saved
from forewarned.storage import rows
from forewarned.storage.postgres.database import PostgresDatabase, Question
from forewarned.storage.postgres.dialect import POSTGRES
from forewarned.storage.rows import FoundRow

_SCOPES: Final = f"SELECT {rows.SCOPE_COLUMNS}, {POSTGRES.counters} FROM scopes"
_IN_ORDER: Final = f"{_SCOPES} WHERE id = ANY(?) AND number > ? ORDER BY number FOR UPDATE"
_AT_ONCE: Final = f"{_SCOPES} WHERE id = ANY(?) AND number <= ? FOR UPDATE NOWAIT"
DUE: Final = f"""
    {_SCOPES} WHERE next_wake <= ? ORDER BY next_wake, id LIMIT ? FOR UPDATE SKIP LOCKED
"""
_RESOURCES: Final = f"""
    SELECT {rows.RESOURCE_COLUMNS} FROM resources WHERE scope_id = ANY(?)
    ORDER BY scope_id, position
"""
_EVENTS: Final = """
    SELECT * FROM events WHERE scope_id = ANY(?) AND ended_at IS NULL ORDER BY scope_id, sequence
"""


class LockedScopes:
    """Of one transaction, as the functions that share it leave them."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._scopes: dict[ScopeId, Saved] = {}
        self._highest = 0
        self._absent: set[ScopeId] = set()
        self.wanted: set[ScopeId] = set()
        """What a rerun has to lock first."""

    def begin(self, scope_ids: Collection[ScopeId], *, first: Question, last: Question) -> FoundRow:
        """Lock the scopes between two questions, in one round trip. Returns the last answer."""
        ids = list(scope_ids)
        self.wanted.update(ids)
        locking = _questions(_IN_ORDER, ids, 0) if ids else []
        _, *locked, [answer] = self._database.ask_together([first, *locking, last])
        if locked:
            scopes, resources, events = locked
            self._take(scopes, resources, events)
        return answer

    def find(self, scope_id: ScopeId) -> Saved | None:
        return self._scopes.get(scope_id)

    def is_absent(self, scope_id: ScopeId) -> bool:
        """Whether it was to be locked, and did not exist."""
        return scope_id in self._absent

    def lock(self, scope_ids: Collection[ScopeId]) -> None:
        """Lock those that exist."""
        held = self._highest
        for question in (_IN_ORDER, _AT_ONCE) if held else (_IN_ORDER,):
            missing = [
                each for each in scope_ids if each not in self._scopes and each not in self._absent
            ]
            if not missing:
                return
            self.wanted.update(missing)
            scopes, resources, events = self._database.ask_together(
                _questions(question, missing, held)
            )
            self._take(scopes, resources, events)
        self._absent.update(each for each in missing if each not in self._scopes)

    def claimed(self, scopes: Sequence[FoundRow]) -> None:
        """These have been locked by their question."""
        ids = [row["id"] for row in scopes if row["id"] not in self._scopes]
        if ids:
            resources, events = self._database.ask_together(_contents(ids))
            self._take(scopes, resources, events)

    def written(self, scopes: Mapping[ScopeId, Saved]) -> None:
        """By a function that has succeeded."""
        self._scopes.update(scopes)

    def _take(
        self,
        scopes: Sequence[FoundRow],
        resources: Sequence[FoundRow],
        events: Sequence[FoundRow],
    ) -> None:
        vms, opened = rows.by_scope(resources), rows.by_scope(events)
        for row in scopes:
            self._highest = max(self._highest, row["number"])
            scope_id = ScopeId(row["id"])
            if scope_id not in self._scopes:
                self._scopes[scope_id] = rows.to_saved(
                    row, resources=vms.get(scope_id, ()), events=opened.get(scope_id, ())
                )


def _questions(locking: str, ids: list[ScopeId], number: int) -> list[Question]:
    return [(locking, (POSTGRES.several(ids), number)), *_contents(ids)]


def _contents(ids: list[ScopeId]) -> list[Question]:
    wanted = POSTGRES.several(ids)
    return [(_RESOURCES, (wanted,)), (_EVENTS, (wanted,))]
