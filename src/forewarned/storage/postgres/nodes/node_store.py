"""A node's own part of a shared store: its id, its clock, and how far it has seen the store."""

import secrets
import socket
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from forewarned import __version__
from forewarned.clock import ClockGuard
from forewarned.config.values import DatabaseUrl
from forewarned.core.tasks import ActuatorOf, by_operators
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import Node, Serves
from forewarned.storage.postgres import migrate
from forewarned.storage.postgres.epoch import EpochCheck, PositionFile
from forewarned.storage.postgres.store import PostgresStore
from forewarned.storage.relational.transaction import NextWake

_FILE: Final = "node-id"
_MOST_LEAD: Final = timedelta(seconds=5)


def node_store(
    url: DatabaseUrl,
    folder: Path,
    *,
    serves: Serves,
    next_wake: NextWake,
    actuator_of: ActuatorOf = by_operators,
    rules: Mapping[str, str],
) -> PostgresStore:
    """The shared store, for the node whose directory this is."""
    positions = PositionFile(folder)
    check = EpochCheck(positions.read(), positions)
    node = Node(
        id=_node_id(folder),
        name=socket.gethostname(),
        version=__version__,
        speaks=migrate.migrations()[-1].number,
        serves=serves,
    )
    return PostgresStore(
        url,
        node=node,
        next_wake=next_wake,
        actuator_of=actuator_of,
        rules=rules,
        guard=partial(refuse_early_clock, ClockGuard()),
        check=check,
    )


def refuse_early_clock(guard: ClockGuard, instant: datetime) -> None:
    """I4: what starts early can't be taken back. Raises StoreUnavailableError."""
    lead = guard.lead(instant)
    if lead > _MOST_LEAD:
        raise StoreUnavailableError(
            f"the database server's clock is {lead.total_seconds():.0f} s ahead of this"
            " machine's, so this node changes nothing: correct the clock that is wrong"
        )


def _node_id(folder: Path) -> str:
    """The same after a restart."""
    file = folder / _FILE
    try:
        known = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        known = ""
    if not known:
        known = secrets.token_hex(8)
        file.write_text(f"{known}\n", "ascii")
    return known
