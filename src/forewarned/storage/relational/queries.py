"""How a database is asked: what all questions share."""

from collections.abc import Sequence
from datetime import datetime

from forewarned.core.ids import ScopeId
from forewarned.storage.relational.database import Database, Dialect, Parameter
from forewarned.storage.rows import FoundRow


class Queries:
    def __init__(self, database: Database, now: datetime) -> None:
        self._database = database
        self._now = now

    @property
    def now(self) -> datetime:
        return self._now

    @property
    def _dialect(self) -> Dialect:
        return self._database.dialect

    @property
    def _for_update(self) -> str:
        """At the end of questions for rows of which a transaction decides without a scope."""
        return ""

    def _ids(self, sql: str, *values: Parameter) -> list[ScopeId]:
        return [ScopeId(row["id"]) for row in self._all(sql, *values)]

    def _one(self, sql: str, *values: Parameter) -> FoundRow | None:
        """For questions that find one row at most."""
        found = self._database.ask(sql, values)
        return found[0] if found else None

    def _all(self, sql: str, *values: Parameter) -> Sequence[FoundRow]:
        return self._database.ask(sql, values)

    def _named(self, sql: str, **values: Parameter) -> Sequence[FoundRow]:
        return self._database.ask(sql, values)
