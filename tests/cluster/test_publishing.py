"""Messages of several nodes on one PostgreSQL: each at least once, in order per scope (I23)."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, running_nodes
from tests.cluster.waiting import wait_until
from tests.end_to_end.webhook_receiver import Arrived, WebhookReceiver, webhook_receiver
from tests.postgresql.databases import Database
from tests.postgresql.servers import DURABLE, PostgresServer, private_folder

VMS = 6
SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
ALL = ("Scheduled", "Approved", "Started", "Completed")


@contextlib.contextmanager
def published(
    folder: Path, store: str, receiver: WebhookReceiver, *, names: tuple[str, ...] = ("a", "b")
) -> Iterator[dict[str, Node]]:
    """Nodes that all have the subscription in their settings."""
    settings = folder / "forewarned.toml"
    settings.write_text(
        f"""
        publishing_private_addresses = true

        [[subscriptions]]
        name = "ops"
        target = {{ kind = "webhook", url = "{receiver.url}", secrets = ["{SECRET}"] }}
        """
    )
    flag = f"--config={settings}"
    with running_nodes(folder, store, flag, vms=addresses(VMS), names=names) as nodes:
        yield nodes


def vms() -> list[str]:
    return [*addresses(VMS)]


def schedule(node: Node) -> list[str]:
    for address in addresses(VMS).values():
        # VMs that read are given notice.
        requests.poll(node, address=address)
    made = node.server.call("POST", "/v1/events", {"type": "Freeze", "resources": vms()})
    return [event["event_id"] for event in made["events"]]


def go_on(node: Node, action: str, event_ids: list[str]) -> None:
    for event_id in event_ids:
        node.server.call("POST", f"/v1/events/{event_id}/{action}", {})


def wait_for_all(receiver: WebhookReceiver, *statuses: str) -> None:
    for name in vms():
        receiver.wait_for(*statuses, scope=f"vm/{name}")


class Hold:
    """Keeps every answer back until it is over."""

    def __init__(self, receiver: WebhookReceiver) -> None:
        self._is_over = threading.Event()
        receiver.before_answer = self._wait

    def _wait(self, _: Arrived) -> int:
        self._is_over.wait()
        return 200

    def end(self) -> None:
        self._is_over.set()


def test_i23_another_node_takes_over_what_a_killed_one_was_delivering(
    tmp_path: Path, database: Database
) -> None:
    with webhook_receiver() as receiver, published(tmp_path, database.url, receiver) as nodes:
        one, other = nodes.values()
        event_ids = schedule(one)
        wait_for_all(receiver, "Scheduled")
        hold = Hold(receiver)
        try:
            go_on(one, "approve", event_ids)
            wait_for_all(receiver, "Scheduled", "Approved")
            one.kill()
        finally:
            hold.end()
        go_on(other, "complete", event_ids)
        wait_for_all(receiver, *ALL)

    # Some may have been claimed by the other node, which was not killed.
    assert [each.status for each in receiver.arrived].count("Approved") > VMS
    assert database.ask("SELECT count(*) FROM deliveries") == [(0,)]


@pytest.mark.thorough
def test_i23_messages_arrive_although_every_node_is_killed_again_and_again(
    tmp_path: Path, database: Database
) -> None:
    with webhook_receiver() as receiver, published(tmp_path, database.url, receiver) as nodes:
        event_ids = schedule(nodes["a"])
        for action, name in (("approve", "b"), ("complete", "a")):
            go_on(nodes[name], action, event_ids)
            for node in nodes.values():
                node.kill()
                node.start()
        wait_for_all(receiver, *ALL)

    assert database.ask("SELECT count(*) FROM deliveries") == [(0,)]


def test_i23_messages_arrive_although_the_database_is_killed_between_two_of_them(
    tmp_path: Path,
) -> None:
    """It dies when the second of each scope has been sent and not been answered yet, so that no
    node can record the outcome.
    """
    with (
        private_folder() as folder,
        PostgresServer(folder, settings=DURABLE) as server,
        webhook_receiver() as receiver,
    ):
        server.ask("CREATE DATABASE forewarned")
        with published(tmp_path, server.url("forewarned"), receiver) as nodes:
            one, other = nodes.values()
            event_ids = schedule(one)
            wait_for_all(receiver, "Scheduled")
            hold = Hold(receiver)
            try:
                go_on(one, "approve", event_ids)
                wait_for_all(receiver, "Scheduled", "Approved")
                server.kill()
            finally:
                hold.end()
            server.start()
            wait_until(lambda: requests.health(other).status == 200)
            go_on(other, "complete", event_ids)
            wait_for_all(receiver, *ALL)
            wait_until(lambda: _deliveries(server) == 0)


def _deliveries(server: PostgresServer) -> int:
    [(number,)] = server.ask("SELECT count(*) FROM deliveries", database="forewarned")
    return int(number)
