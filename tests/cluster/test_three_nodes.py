"""What is begun at one node is seen at the others: live, in the long run, and by operators."""

import statistics
import threading
import time
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.cluster import requests
from tests.cluster.nodes import Node, running_nodes
from tests.cluster.waiting import wait_until
from tests.end_to_end.az import changes, next_change
from tests.end_to_end.server_process import Answer, Server, local_command
from tests.postgresql.servers import private_folder
from tests.postgresql.standby import ServerPair, server_pair

DATABASE: Final = "forewarned"
VMS: Final = {"web": "127.10.0.1"}
SOON: Final = 0.1
"""Seconds."""
GROUP: Final = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/work"
VM: Final = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/fresh"
VERSION: Final = "api-version=2024-07-01"


@pytest.fixture(scope="module")
def pair() -> Iterator[ServerPair]:
    with private_folder() as folder, server_pair(folder) as running:
        running.primary.ask(f"CREATE DATABASE {DATABASE}")
        yield running


@pytest.fixture(scope="module")
def nodes(pair: ServerPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    with running_nodes(
        tmp_path_factory.mktemp("nodes"), pair.url(DATABASE), "--arm=127.0.0.1:0", vms=VMS
    ) as running:
        yield list(running.values())


def test_the_third_node_tells_of_a_change_within_a_tenth_of_a_second(nodes: list[Node]) -> None:
    """From the first node's answer to the stream by which consoles stay live, the median of 20."""
    first, _, third = nodes
    delays: list[float] = []
    assert requests.poll(first, address=VMS["web"]).status == 200, "its VMs get notice from now on"
    with changes(third.server) as told:
        for _ in range(20):
            seen: list[tuple[str, float]] = []

            def hear(seen: list[tuple[str, float]] = seen) -> None:
                told_of = next_change(told, "scheduled")
                seen.append((told_of["event"]["event_id"], time.monotonic()))

            hearing = threading.Thread(target=hear)
            hearing.start()
            scheduled = requests.schedule(first, "web")
            answered_at = time.monotonic()
            hearing.join(requests.PATIENCE)
            event_id = scheduled.json["events"][0]["event_id"]
            [(told_id, told_at)] = seen
            assert told_id == event_id
            delays.append(told_at - answered_at)
            requests.cancel(first, event_id)
            next_change(told, "canceled")

    assert statistics.median(delays) < SOON, sorted(delays)


def test_an_operation_begun_at_one_node_is_followed_at_another(
    pair: ServerPair, nodes: list[Node]
) -> None:
    """az goes through a balancer, which sends each request where it likes."""
    first, second, third = (node.server for node in nodes)
    store = f"--store={pair.url(DATABASE)}"
    made = local_command(first, "token", "create", "olga", "--role=admin", store)
    token = {"Authorization": f"Bearer {made['token']}"}
    # Nodes look for new principals once a second.
    wait_until(lambda: all(_admits(node.server, token) for node in nodes))

    first.ask_arm("PUT", f"{GROUP}?{VERSION}", {"location": "local"}, **token)
    begun = second.ask_arm("PUT", f"{VM}?{VERSION}", {"location": "local"}, **token)
    assert begun.status < 300, begun.body
    found = third.ask_arm("GET", f"{VM}?{VERSION}", **token)
    created = third.ask_arm("GET", _progress_of(begun), **token)
    deleted = first.ask_arm("DELETE", f"{VM}?{VERSION}", **token)
    assert deleted.status == 202, deleted.body
    under_way = third.ask_arm("GET", _progress_of(deleted), **token)
    [event] = second.call("GET", "/v1/events")["events"]
    requests.complete(nodes[1], event["event_id"])
    over = third.ask_arm("GET", _progress_of(deleted), **token)

    assert found.status == 200
    assert created.json["status"] == "Succeeded"
    assert under_way.json["status"] == "InProgress"
    assert over.json["status"] == "Succeeded"


def _admits(server: Server, token: dict[str, str]) -> bool:
    return server.ask_arm("GET", f"{GROUP}?{VERSION}", **token).status != 401


def _progress_of(begun: Answer) -> str:
    where = urlsplit(begun.headers["azure-asyncoperation"])
    return f"{where.path}?{where.query}"


def test_health_says_whether_the_database_has_a_synchronous_standby(
    pair: ServerPair, nodes: list[Node]
) -> None:
    """A failover could lose what was confirmed to only one of its copies."""
    before = [requests.health(node).json["store"] for node in nodes]
    pair.primary.set("synchronous_standby_names", "")
    try:
        for node in nodes:
            wait_until(lambda node=node: requests.health(node).json["store"] == "one_copy")  # type: ignore[misc]
    finally:
        pair.primary.set("synchronous_standby_names", "*")

    assert before == ["standbys"] * 3
