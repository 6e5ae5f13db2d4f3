"""The settings that all nodes of one store must agree on."""

from collections.abc import Mapping

import msgspec

from forewarned.storage.errors import OtherRulesError
from forewarned.storage.postgres.connection import Connection
from forewarned.storage.postgres.nodes.listing import RUNNING


def agree(connection: Connection, rules: Mapping[str, str], *, node: str, where: str) -> None:
    """Make these the rules of the store, unless another node runs with others.

    The connection must not be in a transaction. Raises OtherRulesError.
    """
    with connection.transaction():
        [[found]] = connection.execute("SELECT rules FROM store FOR UPDATE").fetchall()
        theirs: dict[str, str] = msgspec.json.decode(found, type=dict[str, str]) if found else {}
        if theirs == dict(rules):
            return
        others = connection.execute(
            f"SELECT name FROM nodes WHERE id <> %s AND {RUNNING} ORDER BY name", [node]
        ).fetchall()
        if theirs and others:
            raise OtherRulesError(
                where,
                nodes=[name for [name] in others],
                differing={
                    name: (theirs.get(name, "unknown"), rules.get(name, "unknown"))
                    for name in sorted({*theirs, *rules})
                    if theirs.get(name) != rules.get(name)
                },
            )
        connection.execute("UPDATE store SET rules = %s", [msgspec.json.encode(rules).decode()])
