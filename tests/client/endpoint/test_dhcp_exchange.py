"""A real DHCP server hands out option 245, in a network namespace of its own."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from forewarned.client import EndpointNotFoundError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")

CLIENT, SERVER = f"fw-client-{os.getpid()}", f"fw-server-{os.getpid()}"
ASK = """
from forewarned.client._endpoint.dhcp_exchange import DhcpExchange
print(DhcpExchange(interface={interface!r}, tries=(5.0, 5.0)).ask())
"""
FIND = """
from forewarned.client._endpoint.discovery import Discovery
print(Discovery(environment={}, leases=[]).find())
"""


class Network(NamedTuple):
    folder: Path

    @contextlib.contextmanager
    def dnsmasq(self, *options: str) -> Iterator[None]:
        """Until it says that it serves; ended with the block."""
        command = ["dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--user=root",
                   "--interface=veth-s", "--bind-interfaces", "--log-facility=-", "--pid-file",
                   "--dhcp-range=10.99.0.50,10.99.0.60,1h", "--dhcp-authoritative",
                   f"--dhcp-leasefile={self.folder / 'leases'}", *options]  # fmt: skip
        with subprocess.Popen(
            ["ip", "netns", "exec", SERVER, *command], stderr=subprocess.PIPE, text=True
        ) as running:
            assert running.stderr is not None
            assert any("DHCP, IP range" in line for line in running.stderr)
            try:
                yield
            finally:
                running.terminate()

    @staticmethod
    def run(program: str) -> str:
        done = subprocess.run(
            ["ip", "netns", "exec", CLIENT, sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def _missing(what: str) -> None:
    """A person may lack it; the machine that judges changes may not."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def _run(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    if os.geteuid() != 0:
        _missing("DHCP is not tested: network namespaces need root")
    if shutil.which("dnsmasq") is None:
        install = ("apt-get", "install", "--yes", "--no-install-recommends", "dnsmasq-base")
        if not _run(*install) and not (_run("apt-get", "update") and _run(*install)):
            _missing("DHCP is not tested: dnsmasq is neither there nor can be installed")
    if not _run("ip", "netns", "add", CLIENT):
        _missing("DHCP is not tested: network namespaces can't be made here")
    try:
        for command in (
            f"ip netns add {SERVER}",
            f"ip -n {CLIENT} link add veth-c type veth peer name veth-s netns {SERVER}",
            f"ip -n {SERVER} addr add 10.99.0.1/24 dev veth-s",
            f"ip -n {SERVER} link set veth-s up",
            f"ip -n {CLIENT} addr add 10.99.0.2/24 dev veth-c",
            f"ip -n {CLIENT} link set veth-c up",
            f"ip -n {CLIENT} route add default via 10.99.0.1",
        ):
            subprocess.run(command.split(), check=True)
        yield Network(tmp_path_factory.mktemp("dhcp"))
    finally:
        _run("ip", "netns", "delete", CLIENT)
        _run("ip", "netns", "delete", SERVER)


def test_the_address_comes_from_a_real_server(network: Network) -> None:
    with network.dnsmasq("--dhcp-option=245,168.63.129.16"):
        assert network.run(ASK.format(interface="veth-c")) == "168.63.129.16"
        assert network.run(ASK.format(interface=None)) == "168.63.129.16"


def test_discovery_asks_a_server_when_nothing_else_knows(network: Network) -> None:
    with network.dnsmasq("--dhcp-option=245,168.63.129.16"):
        assert network.run(FIND) == "http://168.63.129.16"


def test_a_server_without_the_option_offers_nothing(network: Network) -> None:
    program = ASK.replace("(5.0, 5.0)", "(0.5,)")

    with network.dnsmasq():
        assert network.run(program.format(interface="veth-c")) == "None"


def test_whoever_is_not_root_is_told_so() -> None:
    if os.geteuid() != 0:
        _missing("only root can try what others may not")
    # Imported while still root: the tree need not be anybody's to read.
    loading = "import os, encodings.idna, http.client, forewarned.client._endpoint.dhcp_exchange"
    program = f"{loading}; os.setgroups([]); os.setuid(65534)\n{FIND}"

    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert "asking a DHCP server needs root" in done.stderr
    assert EndpointNotFoundError.__name__ in done.stderr
