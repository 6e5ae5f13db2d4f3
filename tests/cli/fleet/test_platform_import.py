"""Fleet files from what a platform lists."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec

from forewarned.cli.fleet.platform_import import fleet_file
from forewarned.control.fleet.file import parse_fleet
from forewarned.service.sources.listing import ListedVm, Listing
from tests.end_to_end.server_process import environment
from tests.packages import need_libvirt_library

DOMAIN = """
<domain type='test'>
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  <memory>1024</memory>
  <os><type>hvm</type></os>
  <devices>
    <interface type='network'><mac address='{mac}'/><source network='default'/></interface>
  </devices>
</domain>
"""
NETWORK = """
<network>
  <name>default</name>
  <bridge name='virbr0'/>
  <ip address='192.168.122.1' netmask='255.255.255.0'>
    <dhcp>
      <range start='192.168.122.2' end='192.168.122.254'/>
      <host mac='52:54:00:00:00:01' ip='192.168.122.11'/>
    </dhcp>
  </ip>
</network>
"""


def a_uuid(number: int) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000"


def listed(number: int, name: str, **more: str) -> ListedVm:
    return msgspec.convert(
        {"vm_id": a_uuid(number), "name": name, "host": "hv-a", **more}, ListedVm
    )


def text_of(*vms: ListedVm) -> str:
    return "".join(fleet_file(Listing(vms=vms), platform="libvirt"))


def test_what_is_printed_can_be_applied() -> None:
    web = listed(1, "web", address="10.0.0.1", interface="tap-web", zone="2")
    one = listed(2, "db-0", address="10.0.0.2", availability_set="db")
    two = listed(3, "db-1", address="10.0.0.3", availability_set="db", host="hv-b")

    plan = parse_fleet(text_of(web, one, two), source="test")

    (vm,) = plan.vms
    assert (vm.name, vm.vm_id, vm.address, vm.interface) == (
        "web",
        a_uuid(1),
        "10.0.0.1",
        "tap-web",
    )
    assert (vm.host, vm.zone) == ("hv-a", "2")
    (db,) = plan.availability_sets
    assert [(each.name, each.vm_id, each.host) for each in db.members] == [
        ("db-0", a_uuid(2), "hv-a"),
        ("db-1", a_uuid(3), "hv-b"),
    ]


def test_vms_of_a_set_that_share_a_host_are_in_one_update_domain() -> None:
    vms = [listed(n, f"db-{n}", address=f"10.0.0.{n}", availability_set="db") for n in (1, 2)]

    plan = parse_fleet(text_of(*vms), source="test")

    assert plan.availability_sets[0].update_domains == 1


def test_a_vm_that_can_not_be_declared_is_a_comment_that_says_why() -> None:
    text = text_of(
        listed(1, "web", address="10.0.0.1"),
        listed(2, "WEB", address="10.0.0.2"),
        listed(3, "mute"),
        listed(4, "my vm", address="10.0.0.4"),
    )

    assert [vm.name for vm in parse_fleet(text, source="test").vms] == ["web"]
    assert "# WEB: another VM of this file has its name" in text
    assert "# mute: its platform gives it no address" in text
    assert "# my vm: its name has characters" in text


def test_vms_of_libvirt_are_listed_with_the_addresses_that_it_gives_them(tmp_path: Path) -> None:
    need_libvirt_library()
    domains = [
        DOMAIN.format(name=name, uuid=a_uuid(number), mac=f"52:54:00:00:00:0{number}")
        for number, name in enumerate(["web", "unknown"], 1)
    ]
    (tmp_path / "host.xml").write_text(f"<node>{''.join(domains)}{NETWORK}</node>")

    shown = _run(f"test://{tmp_path}/host.xml", "--json")

    assert shown.returncode == 0, shown.stderr
    (vm,) = json.loads(shown.stdout)["vms"]
    assert (vm["name"], vm["vm_id"], vm["address"]) == ("web", a_uuid(1), "192.168.122.11")


def test_nothing_is_printed_unless_every_libvirt_answers(tmp_path: Path) -> None:
    need_libvirt_library()

    refused = _run("test:///default", f"test://{tmp_path}/missing.xml")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "not every libvirt host answered" in refused.stderr
    assert "missing.xml" in refused.stderr


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "forewarned", "fleet", "import", "libvirt", *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
