"""Drains in a database: one row for each host, read and written whole."""

from typing import Final

import msgspec

from forewarned.core.ids import HostName
from forewarned.service.drains.model import Drain
from forewarned.storage.relational.queries import Queries
from forewarned.storage.rows import FoundRow, Row, to_json

ADD: Final = "INSERT INTO drains (document, host) VALUES (?, ?)"
REPLACE: Final = "UPDATE drains SET document = ? WHERE host = ?"

_decoder: Final = msgspec.json.Decoder(Drain)


class Drains(Queries):
    def drain(self, host: HostName) -> Drain | None:
        row = self._one("SELECT document FROM drains WHERE host = ?", host)
        return None if row is None else _to_drain(row)

    def drains(self) -> list[Drain]:
        return list(map(_to_drain, self._all("SELECT document FROM drains ORDER BY host")))

    def lock_drain(self, host: HostName) -> Drain | None:
        row = self._one(f"SELECT document FROM drains WHERE host = ? {self._for_update}", host)
        return None if row is None else _to_drain(row)


def from_drain(drain: Drain) -> Row:
    """The values of `ADD` and `REPLACE`."""
    return to_json(drain), drain.host


def _to_drain(row: FoundRow) -> Drain:
    return _decoder.decode(row["document"])
