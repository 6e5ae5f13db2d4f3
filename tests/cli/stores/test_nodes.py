"""`forewarned nodes`."""

import json
from datetime import timedelta

from forewarned.cli.stores.nodes import _page
from forewarned.control.v1 import wire
from tests.builders import NOON
from tests.cli.printing import printed
from tests.cli.served import Served


def a_node(name: str, *, fresh: bool = True, this: bool = False) -> wire.Node:
    return wire.Node(
        id=name,
        name=name,
        version="1.0",
        speaks=1,
        this=this,
        fresh=fresh,
        seen_at=NOON - timedelta(seconds=1 if fresh else 90),
        lag=wire.Span(timedelta(milliseconds=42)),
        metadata="http://10.0.0.1:80",
        control="https://10.0.0.1:8170",
        arm=None,
    )


def test_a_server_alone_is_its_only_node(served: Served) -> None:
    shown = served.run("nodes").stdout

    assert "node-1 (this)" in shown
    assert "fresh" in shown
    assert "metadata http://node-1:80" in shown
    assert "One copy" not in shown


def test_nodes_are_printed_as_the_api_returned_them(served: Served) -> None:
    [node] = json.loads(served.run("nodes", "--json").stdout)["nodes"]

    assert (node["name"], node["fresh"]) == ("node-1", True)


def test_a_stale_node_and_a_store_with_one_copy_stand_out() -> None:
    nodes = (a_node("host-a", this=True), a_node("host-b", fresh=False))
    found = wire.Nodes(now=NOON, nodes=nodes, epoch=1, standbys="")

    lines = printed(_page(found))

    assert lines[0].split() == ["Node", "Version", "State", "Lag", "Seen", "Serves"]
    assert lines[1].split()[:6] == ["host-a", "(this)", "1.0", "fresh", "42ms", "1s"]
    assert lines[3].split()[:4] == ["host-b", "1.0", "stale", "42ms"]
    assert "1m30s ago" in lines[3]
    assert any(line.startswith("One copy: ") for line in lines)


def test_a_store_with_standbys_is_no_warning() -> None:
    found = wire.Nodes(now=NOON, nodes=(a_node("host-a"),), epoch=1, standbys="b")

    assert "One copy" not in "".join(printed(_page(found)))
