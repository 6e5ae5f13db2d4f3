"""The settings that all nodes of one store must agree on.

Invariant: no node changes anything by other rules than those that the store has. A node is seen to
run from the transaction on in which it agrees. One that was silent for so long that others have
agreed on other rules finds those in its next transaction.
"""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import Node
from forewarned.storage.errors import OtherRulesError
from forewarned.storage.postgres.connection import Connection
from forewarned.storage.postgres.nodes.listing import RUNNING, note_alive


def agree(connection: Connection, rules: Mapping[str, str], *, node: Node, where: str) -> None:
    """Make these the rules of the store, unless another node runs with others.

    The connection must not be in a transaction. Raises OtherRulesError.
    """
    with connection.transaction():
        [[found]] = connection.execute("SELECT rules FROM store FOR UPDATE").fetchall()
        theirs = _decoded(found)
        note_alive(connection, node)
        if theirs == rules:
            # What is left to commit is a sign of life, which may be lost.
            connection.execute("SET LOCAL synchronous_commit = off")
            return
        others = connection.execute(
            f"SELECT name FROM nodes WHERE id <> %s AND {RUNNING} ORDER BY name", [node.id]
        ).fetchall()
        if theirs and others:
            raise OtherRulesError(
                where, nodes=[name for [name] in others], differing=_differing(theirs, rules)
            )
        connection.execute("UPDATE store SET rules = %s", [msgspec.json.encode(rules).decode()])


def refuse_other_rules(found: str, rules: Mapping[str, str]) -> None:
    """`found` are those of the store, as it has them. Raises StoreUnavailableError."""
    theirs = _decoded(found)
    if theirs == rules:
        return
    listed = ", ".join(
        f"{name} is {there} there and {here} here"
        for name, (there, here) in _differing(theirs, rules).items()
    )
    raise StoreUnavailableError(
        "while this node did not respond, another was started with different settings"
        f" ({listed}), so this node changes nothing: restart it with the settings of the others"
    )


def _differing(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {
        name: (theirs.get(name, "unknown"), ours.get(name, "unknown"))
        for name in sorted({*theirs, *ours})
        if theirs.get(name) != ours.get(name)
    }


# Each transaction asks.
@lru_cache(maxsize=4)
def _decoded(found: str) -> Mapping[str, str]:
    return msgspec.json.decode(found, type=dict[str, str]) if found else {}
