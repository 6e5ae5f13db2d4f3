"""S10, F16: one address that strains the arm and control listeners, and the others there.

Its neighbours are served all the while, and so are VMs; the writer's memory stays bounded, and
every connection that keeps the server waiting is closed.
"""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.server_process import ready, start
from tests.end_to_end.supervised_server import SupervisedServer, wait_until

ENDPOINTS: Final = "/metadata/endpoints?api-version=2022-09-01"
STRAINER: Final = "127.0.0.66"
NEIGHBOUR: Final = "127.0.0.77"
MANY: Final = 600
MOST_OF_ONE_ADDRESS: Final = 128
QUICK: Final = 2.0
"""Seconds within which a neighbour is answered. A loaded machine may take half of them itself."""
MUCH: Final = 40 << 20
"""Bytes that the writer may grow by. Before there were limits, this many made it 90 MiB larger."""
SOON: Final = 30.0
"""Seconds within which all of them are closed, on a loaded machine too: the deadline is 5."""
HELLO: Final = bytes.fromhex("160301020001000001fc0303")
"""How a TLS client begins to say hello."""


@pytest.fixture(scope="module")
def supervised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupervisedServer]:
    folder = tmp_path_factory.mktemp("flooded")
    with start(folder, "--workers", "1", "--log-format", "json") as running:
        try:
            yield SupervisedServer(running, ready(running, folder), folder)
        finally:
            running.terminate()


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def connect(address: str) -> socket.socket:
    return socket.create_connection(
        ("127.0.0.1", port_of(address)), timeout=60, source_address=(STRAINER, 0)
    )


def is_closed(client: socket.socket) -> bool:
    """Whether the server has hung up, whatever it said before that."""
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def still_open(clients: list[socket.socket]) -> list[socket.socket]:
    return [client for client in clients if not is_closed(client)]


def resident(supervised: SupervisedServer) -> int:
    status = Path(f"/proc/{supervised.pid('writer')}/status").read_text()
    [kib] = (row.split()[1] for row in status.splitlines() if row.startswith("VmRSS:"))
    return int(kib) * 1024


def not_noticed_by_others(supervised: SupervisedServer) -> None:
    """A neighbour at both listeners and a VM ask, and are answered soon."""
    server = supervised.server
    trusting = ssl.create_default_context(cafile=str(server.data / "arm-ca.pem"))
    source = (NEIGHBOUR, 0)
    arm = HTTPSConnection(
        "127.0.0.1", port_of(server.arm), timeout=60, source_address=source, context=trusting
    )
    control = HTTPConnection(
        "127.0.0.1", port_of(server.control), timeout=60, source_address=source
    )
    for connection, path in ((arm, ENDPOINTS), (control, "/v1/health")):
        with contextlib.closing(connection):
            began = time.monotonic()
            connection.request("GET", path)
            assert connection.getresponse().status == 200
            assert time.monotonic() - began < QUICK
    began = time.monotonic()
    assert server.get().status == 200
    assert time.monotonic() - began < QUICK


@pytest.mark.parametrize("listener", ["arm", "control"])
def test_s10_connections_of_one_address_that_ask_nothing_are_few_and_soon_closed(
    supervised: SupervisedServer, listener: str
) -> None:
    address = supervised.server.arm if listener == "arm" else supervised.server.control
    before = resident(supervised)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(address)) for _ in range(MANY)]
        for client in clients:
            with contextlib.suppress(OSError):
                client.sendall(HELLO if listener == "arm" else b"GET / HT")
            if client is clients[MANY // 2]:
                not_noticed_by_others(supervised)

        grown = resident(supervised) - before
        wait_until(lambda: len(still_open(clients)) <= MOST_OF_ONE_ADDRESS)
        not_noticed_by_others(supervised)
        wait_until(lambda: not still_open(clients))

    assert grown < MUCH
    assert time.monotonic() - began < SOON
