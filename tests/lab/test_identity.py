"""Guests at ports of a hypervisor's bridges that use the address of another guest.

`tests/end_to_end/test_port_marks.py` has more of this, with namespaces for VMs.
"""

import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from tests.end_to_end.bridges import Hypervisor
from tests.end_to_end.namespaces import METADATA, ip, serving_in, within
from tests.end_to_end.server_process import Server
from tests.end_to_end.supervised_server import wait_until
from tests.packages import need
from tools.lab.guests import GuestPlan
from tools.lab.lab import Guest, Lab

HOST: Final = "hv-a"
SERVICE: Final = (
    *("--mode", "service", "--control-access", "open", "--identity", "port-marks"),
    *("--rate-limit", "off"),
)
RULES: Final = (sys.executable, "-m", "forewarned", "host", "rules", HOST)
SHOP: Final = GuestPlan(name="shop", number=11, bridge="br1", approves=False)
MARKS: Final = {"shop": 101, "thief": 102, "twin": 103}
PATIENCE: Final = 90

pytestmark = pytest.mark.thorough  # three more guests boot; see above for what is always tested


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """A hypervisor with a server on it, which knows guests by their ports."""

    hypervisor: Hypervisor
    server: Server

    def ask(self, method: str, path: str, body: object = None) -> Any:  # JSON
        call = partial(self.server.call, method, path, body)
        return within(self.hypervisor.namespace, call)

    def declare(self, **addresses: str) -> None:
        """A fleet that knows these addresses of guests, and its rules."""
        vms = [
            {"name": name, "host": HOST, "port_mark": mark, "interface": f"fw-{name}"}
            | ({"address": addresses[name]} if name in addresses else {})
            for name, mark in MARKS.items()
        ]
        self.ask("PUT", "/v1/fleet", {"vms": vms})
        rules = self.hypervisor.run(*RULES, "--control", self.server.control)
        self.hypervisor.run("nft", "-f", "-", stdin=rules)

    def schedule(self, vm: str) -> str:
        answer = self.ask("POST", "/v1/events", {"type": "Reboot", "resources": [vm]})
        return str(answer["events"][0]["event_id"])

    def status(self, event_id: str) -> str:
        return str(self.ask("GET", f"/v1/events/{event_id}")["status"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    at: Identities
    shop: Guest
    thief: Guest
    """At the same bridge, with the address of `shop`."""
    twin: Guest
    """At another bridge, with the same address."""
    event: str
    """Of `shop`, which approves nothing. The others try to approve it all the time."""


@pytest.fixture(scope="module")
def site(the_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    need("nft")
    with contextlib.ExitStack() as stack:
        hypervisor = Hypervisor(namespace=the_lab.hosts[HOST].namespace, _stack=stack)
        _connect(hypervisor, stack)
        folder = tmp_path_factory.mktemp("server")
        server = stack.enter_context(serving_in(hypervisor.namespace, folder, *SERVICE))
        at = Identities(hypervisor=hypervisor, server=server)
        at.declare()
        shop = stack.enter_context(the_lab.guest(SHOP, host=HOST))
        shop.serial.wait_for("poll")
        event = at.schedule("shop")
        thief, twin = (
            stack.enter_context(the_lab.guest(plan, host=HOST))
            for plan in (
                GuestPlan(name="thief", number=12, takes=11, bridge="br1", tries=event),
                GuestPlan(name="twin", number=13, takes=11, bridge="br2", tries=event),
            )
        )
        thief.serial.wait_for("answer")
        twin.serial.wait_for("answer")
        yield Site(at=at, shop=shop, thief=thief, twin=twin, event=event)


def _connect(hypervisor: Hypervisor, stack: contextlib.ExitStack) -> None:
    """Two bridges beside the lab's own, and the metadata address for both."""
    where = hypervisor.namespace
    # The lab's other guests find the service elsewhere.
    hypervisor.run("sysctl", "-qw", "net.ipv4.conf.br0.arp_ignore=8")
    for name in ("br1", "br2"):
        hypervisor.bridge(name)
        stack.callback(ip, "-n", where, "link", "del", name)
        hypervisor.run("sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=0")
    hypervisor.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
    ip("-n", where, "addr", "add", f"{METADATA}/32", "dev", "lo")
    stack.callback(ip, "-n", where, "addr", "del", f"{METADATA}/32", "dev", "lo")
    link = ("10.77.0.0/24", "src", METADATA, "dev")
    ip("-n", where, "route", "add", *link, "br1")
    ip("-n", where, "route", "add", *link, "br2", "table", "103")
    ip("-n", where, "rule", "add", "fwmark", "103", "lookup", "103")
    stack.callback(ip, "-n", where, "rule", "del", "fwmark", "103", "lookup", "103")
    stack.callback(hypervisor.run, "nft", "delete", "table", "bridge", "forewarned")


def test_a_guest_with_an_address_that_the_fleet_gives_another_reaches_nothing(site: Site) -> None:
    """S3: it reads nothing and approves nothing, and the other does not notice."""
    site.at.declare(shop=SHOP.address, thief="10.77.0.99")

    _wait_for_last(site.thief, "document", "^unreachable$")
    _wait_for_last(site.thief, "answer", "^unreachable$")
    _wait_for_last(site.shop, "document", site.event)

    assert site.at.status(site.event) == "Scheduled"
    assert not _said(site.thief, f"document .*{site.event}")


def test_a_guest_with_anothers_address_is_still_itself(site: Site) -> None:
    """S3: by its port alone, as the fleet knows no address. The other guest is silent."""
    site.at.declare()
    with _silent(site, site.shop):
        _wait_for_last(site.thief, "document", "^{")
        own = site.at.schedule("thief")
        _wait_for_last(site.thief, "document", own)
        _wait_for_last(site.thief, "answer", " 400 ")
    _wait_for_last(site.shop, "document", site.event)

    assert site.at.status(site.event) == "Scheduled"
    assert not _said(site.thief, f"document .*{site.event}")


def test_the_same_address_at_two_ports_is_two_guests(site: Site) -> None:
    """S3: each reads its own document, and can't approve the other's event."""
    site.at.declare(shop=SHOP.address, twin=SHOP.address)

    own = site.at.schedule("twin")
    _wait_for_last(site.twin, "document", own)
    _wait_for_last(site.twin, "answer", " 400 ")
    _wait_for_last(site.shop, "document", site.event)

    assert site.at.status(site.event) == "Scheduled"
    assert not _said(site.shop, f"document .*{own}")
    assert not _said(site.twin, f"document .*{site.event}")


@contextlib.contextmanager
def _silent(site: Site, guest: Guest) -> Iterator[None]:
    where = site.at.hypervisor.namespace
    port = ("-n", where, "link", "set", guest.plan.interface)
    ip(*port, "down")
    ip("-n", where, "neigh", "flush", "dev", "br1")
    try:
        yield
    finally:
        ip(*port, "up")
        ip("-n", where, "neigh", "flush", "dev", "br1")


def _wait_for_last(guest: Guest, word: str, pattern: str) -> None:
    """Until that is what it has said last of this."""
    wait_until(lambda: bool(re.search(pattern, _last(guest, word))), patience=PATIENCE)


def _last(guest: Guest, word: str) -> str:
    """Guests say what they read, and what is answered, when it changes."""
    said = [line.text for line in guest.serial.lines if line.text.startswith(f"{word} ")]
    return said[-1].removeprefix(f"{word} ") if said else ""


def _said(guest: Guest, pattern: str) -> bool:
    return any(re.search(pattern, line.text) for line in guest.serial.lines)
