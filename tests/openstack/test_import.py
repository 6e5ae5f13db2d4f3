"""A fleet file with the VMs of a real Nova."""

import pytest
from click.testing import CliRunner

from forewarned.cli.app import cli
from forewarned.control.fleet.file import parse_fleet
from tests.openstack.lab import IMAGE, Nova

pytestmark = pytest.mark.thorough
PORT = "ce531f90-199f-48c0-816c-13e38010b442"
"""One that Nova's stand-in for Neutron has, with the address 192.168.1.3."""


def arguments(nova: Nova) -> list[str]:
    cloud = nova.cloud
    return [
        *("fleet", "import", "openstack", "--auth-url", cloud.auth_url),
        *("--credential-id", cloud.credential_id, "--secret-file", cloud.secret_file),
    ]


def test_vms_are_printed_with_their_ids_addresses_groups_and_zones(nova: Nova) -> None:
    body = {"server_group": {"name": "shop", "policy": "anti-affinity"}}
    group = nova.ask("POST", "/os-server-groups", body)["server_group"]["id"]
    shop_0 = nova.created(
        {"name": "shop-0", "imageRef": IMAGE, "flavorRef": "1", "networks": [{"port": PORT}]},
        **{"os:scheduler_hints": {"group": group}},
    )
    nova.create("bare-0")

    done = CliRunner().invoke(cli, arguments(nova))

    assert done.exit_code == 0, done.output
    (shop,) = parse_fleet(done.output, source="test").availability_sets
    (vm,) = shop.members
    assert shop.name == "shop"
    assert (vm.name, vm.vm_id, vm.host, vm.address) == (
        "shop-0",
        shop_0.vm_id,
        shop_0.host,
        "192.168.1.3",
    )
    assert "# bare-0: its platform gives it no address" in done.output


def test_a_cloud_that_does_not_answer_prints_nothing(nova: Nova) -> None:
    nova.lab("break")

    done = CliRunner().invoke(cli, arguments(nova))

    assert done.exit_code == 1
    assert "the cloud's VMs can't be listed; nothing was written" in done.output
    assert "Nova answered 500: broken" in done.output
