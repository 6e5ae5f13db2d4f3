"""The table of nodes: each writes its own row once a second."""

from datetime import timedelta
from typing import Final

from forewarned.service.records import Node, NodeListing, SeenNode, Serves
from forewarned.storage.postgres.connection import Connection
from forewarned.storage.postgres.dialect import NOW
from forewarned.storage.relational.database import Database
from forewarned.storage.rows import FoundRow, to_instant

RUNNING: Final = f"seen_at > {NOW} - 10000000"
"""Whether a node is taken to be running: it has said so in the last ten seconds."""
_BEAT: Final = f"""
    INSERT INTO nodes (id, name, version, speaks, metadata, control, arm, lag, seen_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, {NOW})
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, version = excluded.version, speaks = excluded.speaks,
        metadata = excluded.metadata, control = excluded.control, arm = excluded.arm,
        lag = excluded.lag, seen_at = excluded.seen_at
"""
_STORE: Final = f"""
    SELECT {NOW} AS now, epoch, current_setting('synchronous_standby_names') AS standbys FROM store
"""
_NO_LAG: Final = timedelta()
_NODES: Final = "SELECT * FROM nodes ORDER BY name, id"


def beat(connection: Connection, node: Node, *, lag: timedelta) -> None:
    """Say that the node lives. A beat may be lost, so none waits for a disk or a standby."""
    with connection.pipeline():
        connection.execute("BEGIN")
        connection.execute("SET LOCAL synchronous_commit = off")
        note_alive(connection, node, lag=lag)
        connection.execute("COMMIT")


def note_alive(connection: Connection, node: Node, *, lag: timedelta = _NO_LAG) -> None:
    """The same, in a transaction of the caller's."""
    serves = node.serves
    connection.execute(
        _BEAT.encode(),
        [
            *(node.id, node.name, node.version, node.speaks),
            *(serves.metadata, serves.control, serves.arm),
            lag // timedelta(microseconds=1),
        ],
    )


def listing(database: Database) -> NodeListing:
    [store], found = database.ask(_STORE), database.ask(_NODES)
    return NodeListing(
        now=to_instant(store["now"]),
        nodes=tuple(map(_seen, found)),
        epoch=store["epoch"],
        standbys=store["standbys"],
    )


def _seen(row: FoundRow) -> SeenNode:
    return SeenNode(
        Node(
            id=row["id"],
            name=row["name"],
            version=row["version"],
            speaks=row["speaks"],
            serves=Serves(row["metadata"], row["control"], row["arm"]),
        ),
        seen_at=to_instant(row["seen_at"]),
        lag=timedelta(microseconds=row["lag"]),
    )
