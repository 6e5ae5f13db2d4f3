"""How SQLite spells what PostgreSQL spells differently."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from forewarned.storage.relational.database import Dialect, Parameter
from forewarned.storage.rows import to_json


class SqliteDialect:
    join_in_order = "CROSS JOIN"
    for_update = ""  # there is one writer
    unlocked = ""
    differs_from = "IS NOT"
    counters = "revision, incarnation"
    disorder_of_history = timedelta(0)

    def several(self, values: Collection[str] | Collection[int]) -> Parameter:
        return to_json(list(values))

    def among(self, column: str, placeholder: str) -> str:
        return f"{column} IN (SELECT value FROM json_each({placeholder}))"

    def indexed_by(self, index: str) -> str:
        return f"INDEXED BY {index}"

    def begins(self, column: str, placeholder: str) -> str:
        # No text has this byte, so what begins with the prefix, and nothing else, lies between the
        # two. LIKE would take some characters of the prefix for patterns, and not use the index.
        end = f"{placeholder} || CAST(x'FF' AS TEXT)"
        return f"{column} >= {placeholder} AND {column} < {end}"

    def place_of(self, placeholder: str, column: str) -> str:
        return f"instr({column}, {placeholder})"

    def fold(self, name: str) -> str:
        # A function of ours, which every connection is given.
        return f"fold({name})"

    def each_of(self, column: str, alias: str) -> str:
        return f"json_each({column}) AS {alias}"

    def field_of(self, column: str, name: str) -> str:
        return f"json_extract({column}, '$.{name}')"


SQLITE: Final[Dialect] = SqliteDialect()
