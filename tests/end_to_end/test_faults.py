"""Faults of a real server, with VMs at a process of their own and without."""

from collections.abc import Iterator
from http.client import IncompleteRead
from pathlib import Path

import pytest

from tests.end_to_end.server_process import WORKERS, Server, serving


@pytest.fixture(scope="module", params=WORKERS)
def emulator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), "--workers", request.param) as running:
        yield running


@pytest.fixture
def server(emulator: Server) -> Server:
    """One that other tests have used, without their faults."""
    emulator.call("POST", "/v1/reset")
    emulator.call("DELETE", "/v1/faults")
    return emulator


def test_faults_happen_exactly_as_often_as_asked(server: Server) -> None:
    healthy = server.get()
    server.command("faults", "add", "status", "--status", "410", "--times", "2")
    statuses = [server.get().status for _ in range(3)]
    server.call("POST", "/v1/faults", {"kind": "reset", "times": 1})
    with pytest.raises(ConnectionResetError):
        server.get()
    server.call("POST", "/v1/faults", {"kind": "truncated", "times": 1})
    with pytest.raises(IncompleteRead):
        server.get()
    server.call("POST", "/v1/faults", {"kind": "empty", "times": 1})
    empty = server.get()
    used = [fault["used"] for fault in server.call("GET", "/v1/faults")["faults"]]
    after = server.get()

    assert statuses == [410, 410, 200]
    assert empty.body == b""
    assert used == [2, 1, 1, 1]
    assert after.body == healthy.body


def test_a_stale_document_is_shown_until_the_fault_is_removed(server: Server) -> None:
    vm = server.get("/metadata/instance/compute/name?api-version=2021-12-13&format=text")
    before = server.get()
    server.call("POST", "/v1/faults", {"kind": "stale"})
    event = {"type": "Reboot", "resources": [vm.body.decode()]}
    server.call("POST", "/v1/events", event)
    stale = server.get()
    server.call("DELETE", "/v1/faults")
    fresh = server.get()

    assert stale.body == before.body
    assert len(fresh.json["Events"]) == 1


def test_a_restart_ends_faults(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.call("POST", "/v1/faults", {"status": 500})
        assert server.get().status == 500
    with serving(tmp_path) as server:
        assert server.get().status == 200
        assert server.call("GET", "/v1/faults") == {"faults": []}


def test_a_server_in_service_mode_refuses_them(tmp_path: Path) -> None:
    flags = ("--mode", "service", "--clock", "real", "--control-access", "open")
    with (
        serving(tmp_path, *flags) as server,
        pytest.raises(AssertionError, match="faults_forbidden"),
    ):
        server.call("POST", "/v1/faults", {"kind": "reset"})
