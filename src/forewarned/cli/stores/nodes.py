"""The servers that share a store."""

from collections.abc import Iterator

import click
from rich.console import RenderableType
from rich.text import Text

from forewarned.cli.session import Session, with_session
from forewarned.cli.tables import node_table
from forewarned.control.v1 import wire


@click.command()
@with_session
def nodes(session: Session) -> None:
    """List the servers that share the store, and their lag.

    A node is stale if it has not been seen for 3 seconds, or if it was more than a second behind
    the store when it was last seen. Nodes that have not been seen for a day are not listed. A
    server that does not share its store is the only node.
    """
    answer = session.control.get("/v1/nodes")
    session.show(answer, lambda: _page(answer.read(wire.Nodes)))


def _page(found: wire.Nodes) -> Iterator[RenderableType]:
    yield node_table(found.nodes, now=found.now)
    if found.standbys == "":
        yield ""
        yield Text(
            "One copy: the database has no synchronous standby, so a failover can lose changes"
            " that were confirmed. Set its synchronous_standby_names.",
            "yellow",
        )
