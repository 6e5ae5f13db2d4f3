"""I23: a server killed between two deliveries, or in one, loses no message and keeps their order."""

import queue
import signal
import threading
from pathlib import Path

import pytest

from tests.end_to_end.server_process import Server, ready, start
from tests.end_to_end.webhook_receiver import Arrived, WebhookReceiver, webhook_receiver
from tests.preloaded import Process

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
ALL = ("Scheduled", "Approved", "Started", "Completed")
FLEET = '[[vms]]\nname = "web"\n'


class Killed:
    """A server whose writer and poller die with it, and that is started again."""

    def __init__(self, folder: Path, receiver: WebhookReceiver) -> None:
        self._folder = folder
        (folder / "fleet.toml").write_text(FLEET)
        (folder / "forewarned.toml").write_text(
            f"""
            fleet = "fleet.toml"
            clock = "real"
            freeze_impact = "100ms"
            freeze_settle = "200ms"

            [[subscriptions]]
            name = "ops"
            target = {{ kind = "webhook", url = "{receiver.url}", secrets = ["{SECRET}"] }}
            """
        )
        self._running: Process | None = None
        self.server = self.start()

    def start(self) -> Server:
        self._running = start(self._folder, "--clock", "real", "--config", "forewarned.toml")
        self.server = ready(self._running, self._folder)
        return self.server

    def kill(self) -> None:
        assert self._running is not None
        with self._running:
            self._running.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        assert self._running is not None
        with self._running:
            self._running.send_signal(signal.SIGTERM)


def a_freeze(server: Server) -> str:
    made = server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["web"]})
    event_id: str = made["events"][0]["event_id"]
    return event_id


@pytest.mark.parametrize(
    "killing",
    [
        pytest.param(("Scheduled", "Started"), id="twice"),
        pytest.param(ALL, id="at each", marks=pytest.mark.thorough),
    ],
)
def test_i23_each_message_arrives_in_order_although_the_server_is_killed_while_it_is_sent(
    tmp_path: Path, killing: tuple[str, ...]
) -> None:
    held: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
    is_over = threading.Event()
    seen: set[str] = set()

    def hold_first(arrived: Arrived) -> int:
        """The first attempt is never answered: the server dies meanwhile."""
        if arrived.status in killing and arrived.id not in seen:
            seen.add(arrived.id)
            held.put(arrived)
            is_over.wait()
        return 200

    with webhook_receiver() as receiver:
        receiver.before_answer = hold_first
        killed = Killed(tmp_path, receiver)
        try:
            killed.server.get()
            event_id = a_freeze(killed.server)
            for status in ALL:
                if status == "Approved":
                    approve(killed, event_id)
                if status in killing:
                    assert held.get(timeout=60).status == status
                    killed.kill()
                    killed.start()
            receiver.wait_for(*ALL)
        finally:
            is_over.set()
            killed.stop()

    assert len(receiver.arrived) == len(killing) + len(ALL)
    assert "Traceback" not in (tmp_path / "log").read_text()


def approve(killed: Killed, event_id: str) -> None:
    answer = killed.server.approve(event_id)
    assert answer.status == 200, answer.body


def test_i23_each_message_arrives_although_the_server_is_killed_before_it_is_sent(
    tmp_path: Path,
) -> None:
    """As soon as the change is answered for: what is on its way by then arrives twice."""
    with webhook_receiver() as receiver:
        killed = Killed(tmp_path, receiver)
        try:
            killed.server.get()
            event_id = a_freeze(killed.server)
            killed.kill()
            killed.start()
            approve(killed, event_id)
            killed.kill()
            killed.start()
            receiver.wait_for(*ALL)
        finally:
            killed.stop()
