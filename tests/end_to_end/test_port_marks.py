"""VMs at the bridges of a hypervisor, some of which lie about their address.

The server runs on the hypervisor and knows VMs by port marks; nftables has the rules that
`forewarned host rules` prints.
"""

import contextlib
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from tests import preloaded
from tests.end_to_end.agents import schedule, status_of
from tests.end_to_end.bridges import Guest, Hypervisor, hypervisor
from tests.end_to_end.namespaces import METADATA, inside, ip, serving_in, within
from tests.end_to_end.server_process import Server, environment
from tests.packages import need

T = TypeVar("T")

WEB: Final = "10.77.0.4"
THIEF: Final = "10.77.0.5"
STRANGER: Final = "10.77.0.6"
MARKS: Final = {"web": 101, "thief": 102, "twin": 103}
_ETH_P_IP: Final = 0x0800

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's"),
    pytest.mark.skipif(
        os.geteuid() != 0 and os.environ.get("CI") != "true",
        reason="NOT TESTED: VMs at a bridge in a network namespace, which only root may make",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    hypervisor: Hypervisor
    server: Server
    web: Guest
    thief: Guest
    """At the same bridge."""
    stranger: Guest
    """There too, but not in the fleet."""
    twin: Guest
    """At another bridge, and with the address of `web`."""

    def declare(self, **addresses: str) -> None:
        """The fleet, with what it knows of addresses; and its rules."""
        vms = [
            {"name": name, "host": "hv-a", "port_mark": mark, "interface": f"tap-{name}"}
            | ({"address": addresses[name]} if name in addresses else {})
            for name, mark in MARKS.items()
        ]
        self.control(lambda: self.server.call("PUT", "/v1/fleet", {"vms": vms}))
        rules = preloaded.run(
            *("host", "rules", "hv-a", "--control", _CONTROL),
            environment=environment(),
            namespace=self.hypervisor.namespace,
        )
        self.hypervisor.run("nft", "-f", "-", stdin=rules.stdout)

    def control(self, call: Callable[[], T]) -> T:
        return within(self.hypervisor.namespace, call)

    def announced(self, vm: str) -> str:
        """An event that waits for the VM's approval, and is the only one of that VM."""
        guest: Guest = getattr(self, vm)
        for event_id in guest.events():
            self.control(partial(self.server.call, "POST", f"/v1/events/{event_id}/cancel", {}))
        return self.control(lambda: schedule(self.server, "Reboot", vm))

    def status(self, event_id: str) -> str:
        return self.control(lambda: status_of(self.server, event_id))

    def history(self, event_id: str) -> Any:  # JSON, which a test looks into
        path = f"/v1/history?event={event_id}&action=approved"
        return self.control(lambda: self.server.call("GET", path))["history"]


_CONTROL: Final = "127.0.0.1:8082"
_SERVICE: Final = (
    *("--mode", "service", "--control-access", "open", "--identity", "port-marks"),
    *("--rate-limit", "off"),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    need("nft")
    with hypervisor() as made:
        made.bridge("br0")
        made.bridge("br1")
        guests = {
            "web": made.guest("tap-web", "br0", WEB),
            "thief": made.guest("tap-thief", "br0", THIEF),
            "stranger": made.guest("tap-stranger", "br0", STRANGER),
            "twin": made.guest("tap-twin", "br1", WEB),
        }
        where, link = made.namespace, ("10.77.0.0/24", "src", METADATA, "dev")
        ip("-n", where, "route", "add", *link, "br0")
        ip("-n", where, "route", "add", *link, "br1", "table", "103")
        ip("-n", where, "rule", "add", "fwmark", "103", "lookup", "103")
        with serving_in(where, tmp_path_factory.mktemp("server"), *_SERVICE) as server:
            yield Site(hypervisor=made, server=server, **guests)


@pytest.fixture
def site(built: Site) -> Iterator[Site]:
    yield built
    for guest, address in ((built.web, WEB), (built.thief, THIEF), (built.stranger, STRANGER)):
        guest.take(address)
    ip("-n", built.hypervisor.namespace, "neigh", "flush", "all")


def test_a_vm_with_anothers_address_is_still_itself(site: Site) -> None:
    """S3: by the port alone, for the fleet knows no address that could be checked."""
    site.declare()
    theirs, own = (site.announced(vm) for vm in ("web", "thief"))
    site.web.take("10.77.0.99")

    site.thief.take(WEB)
    read, refused = site.thief.events(), site.thief.approve(theirs)

    assert read == [own]
    assert refused.status == 400
    assert site.status(theirs) == "Scheduled"
    assert site.web.events() == [theirs]


def test_the_same_address_at_two_ports_is_two_vms(site: Site) -> None:
    """S3: each reads its own document, and starts its own event only."""
    site.declare(web=WEB, twin=WEB)
    of_web, of_twin = (site.announced(vm) for vm in ("web", "twin"))

    read = site.web.events(), site.twin.events()
    not_its_own, approved = site.twin.approve(of_web), site.twin.approve(of_twin)

    assert read == ([of_web], [of_twin])
    assert (not_its_own.status, approved.status) == (400, 200)
    assert (site.status(of_web), site.status(of_twin)) == ("Scheduled", "Started")
    [row] = site.history(of_twin)
    assert (row["actor"], row["address"]) == ("vm:twin", "port:103")


def test_a_vm_that_uses_an_address_which_the_fleet_gives_another_reaches_nothing(
    site: Site,
) -> None:
    """S3: its packets end at its port, and it can't answer for that address on the bridge."""
    site.declare(web=WEB, thief=THIEF)
    theirs = site.announced("web")

    site.thief.take(WEB)

    with pytest.raises(OSError):
        site.thief.read()
    with pytest.raises(OSError):
        site.thief.approve(theirs)
    assert site.status(theirs) == "Scheduled"
    assert site.web.events() == [theirs]


def test_a_vm_without_a_mark_can_not_be_one_that_has_one(site: Site) -> None:
    """S3: the address of a VM that is known by its port proves nothing."""
    site.declare()
    theirs = site.announced("web")
    site.web.take("10.77.0.99")

    site.stranger.take(WEB)
    read, refused = site.stranger.read(), site.stranger.approve(theirs)

    assert (read.status, refused.status) == (403, 403)
    assert read.json["error"].startswith(f"Address {WEB} is not bound to any VM")
    assert site.status(theirs) == "Scheduled"


def test_an_answer_leaves_by_the_port_of_its_mark_only(site: Site) -> None:
    """S3: else a VM that answers for another's address could finish what that one began."""
    site.declare()
    site.web.events()
    poisoned = ("neigh", "replace", WEB, "lladdr", site.thief.mac, "dev", "br0", "nud", "reachable")
    ip("-n", site.hypervisor.namespace, *poisoned)

    with _watching(site.thief) as seen:
        with pytest.raises(OSError):
            site.web.read()
        guarded = seen()
        site.hypervisor.run("nft", "flush", "chain", "bridge", "forewarned", "to_vms")
        with pytest.raises(OSError):
            site.web.read()
        unguarded = seen()

    assert not guarded
    assert unguarded, "without the rule the answer would have gone to the other VM"


def test_no_vm_answers_for_the_metadata_address(site: Site) -> None:
    """S3: a VM that takes the listener's address can't show others a document of its own."""
    site.declare()
    own = site.announced("web")
    ip("-n", site.thief.namespace, "addr", "add", f"{METADATA}/32", "dev", "eth0")

    with contextlib.ExitStack() as stack:
        stack.callback(
            ip, "-n", site.thief.namespace, "addr", "del", f"{METADATA}/32", "dev", "eth0"
        )
        for _ in range(3):
            ip("-n", site.web.namespace, "neigh", "flush", "all")
            assert site.web.events() == [own]


def test_a_server_that_may_not_read_marks_does_not_start(site: Site, tmp_path: Path) -> None:
    """S17: it would take VMs for others, or none for itself."""
    switch = "net.ipv4.tcp_fwmark_accept"
    site.hypervisor.run("sysctl", "-qw", f"{switch}=0")
    try:
        done = subprocess.run(
            [
                *inside(site.hypervisor.namespace),
                *("setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all"),
                *(
                    sys.executable,
                    "-m",
                    "forewarned",
                    "serve",
                    *_SERVICE,
                    "--metadata",
                    f"{METADATA}:81",
                ),
                *("--data", str(tmp_path / "state"), "--arm", "off"),
            ],
            env=environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        site.hypervisor.run("sysctl", "-qw", f"{switch}=1")

    assert done.returncode != 0
    assert "can't identify VMs by port marks" in done.stderr
    assert f"sysctl -w {switch}=1" in done.stderr


@contextlib.contextmanager
def _watching(guest: Guest) -> Iterator[Callable[[], bool]]:
    """Says whether packets of the metadata service have come to this VM since it was last asked."""
    sniffer = within(guest.namespace, _open_sniffer)
    with sniffer:
        yield lambda: any(packet[26:30] == socket.inet_aton(METADATA) for packet in _read(sniffer))


def _open_sniffer() -> socket.socket:
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
    sniffer.bind(("eth0", _ETH_P_IP))
    return sniffer


def _read(sniffer: socket.socket) -> list[bytes]:
    packets = []
    while select.select([sniffer], [], [], 0)[0]:
        packets.append(sniffer.recv(2048))
    return packets
