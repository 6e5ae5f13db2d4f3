"""An emulator that other containers reach, from a network namespace that stands for one (S4, S5)."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.namespaces import METADATA, Network, network, serving_in, within
from tests.end_to_end.server_process import DOCUMENT, Answer, Server
from tests.end_to_end.server_process import METADATA as HEADER

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's"),
    pytest.mark.skipif(
        os.geteuid() != 0 and os.environ.get("CI") != "true",
        reason="NOT TESTED: an emulator on a network, as only root may make namespaces",
    ),
]

_CONTROL: Final = 8170
_FLAGS: Final = (
    *("--emulator-access", "network", "--control-access", "open", "--workers", "0"),
    *("--metadata", "0.0.0.0:80", "--control", f"0.0.0.0:{_CONTROL}"),
    *("--hosts", "emulator", "--clock", "paused"),
)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Peer"]:
    folder = tmp_path_factory.mktemp("emulator")
    with network(1) as made, serving_in(made.host, folder, *_FLAGS) as server:
        yield Peer(made, server, folder / "log")


class Peer:
    """A container beside the emulator, whose address no VM of the fleet has."""

    def __init__(self, made: Network, server: Server, log: Path) -> None:
        self._namespace = made.vms[0]
        self.server = server
        self.log = log

    def ask(
        self, path: str, *, port: int = 80, body: object = None, host: str = METADATA, **more: str
    ) -> Answer:
        return within(self._namespace, lambda: _ask(path, port, body, {"Host": host} | more))


def _ask(path: str, port: int, body: object, headers: dict[str, str]) -> Answer:
    with contextlib.closing(HTTPConnection(METADATA, port, timeout=60)) as connection:
        text = None if body is None else json.dumps(body)
        method = "GET" if body is None else "POST"
        more = HEADER | {"Content-Type": "application/json"} | headers
        connection.request(method, path, text, more)
        response = connection.getresponse()
        return Answer(status=response.status, headers={}, body=response.read())


def test_a_container_is_the_first_vm_or_the_one_it_names(peer: Peer) -> None:
    # The first read switches notice on.
    assert peer.ask(f"/vm/db-1{DOCUMENT}").json["Events"] == []
    scheduled = peer.ask(
        "/v1/events", port=_CONTROL, body={"type": "Reboot", "resources": ["db-1"]}
    )

    first, named = peer.ask(DOCUMENT), peer.ask(f"/vm/db-1{DOCUMENT}")

    assert scheduled.status == 201, scheduled.body
    assert first.status == named.status == 200
    assert [event["Resources"] for event in named.json["Events"]] == [["db-1"]]


def test_s5_only_names_it_was_given_lead_to_it(peer: Peer) -> None:
    """A page that has its own name resolve to the emulator's address gets nothing."""
    for port in (80, _CONTROL):
        path = DOCUMENT if port == 80 else "/v1/events"
        assert peer.ask(path, port=port, host="emulator").status == 200
        assert peer.ask(path, port=port, host="rebound.example").status in {400, 403}
    assert peer.ask(DOCUMENT, Origin="http://evil.example").status >= 400
    assert peer.ask("/v1/events", port=_CONTROL, Origin="http://evil.example").status == 403


def test_the_log_says_who_may_do_what(peer: Peer) -> None:
    log = peer.log.read_text()

    assert "everyone who reaches the metadata listener can act as any VM" in log
    assert "everyone who reaches the control listener controls this emulator" in log
