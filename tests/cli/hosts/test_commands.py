"""`forewarned host`."""

import json

from tests.cli.served import Served

VM = {"name": "new", "host": "hv-a", "port_mark": 7, "interface": "tap-7"}


def test_rules_are_printed_as_nft_takes_them_and_who_is_left_out_beside_them(
    served: Served,
) -> None:
    bare = [{"name": f"bare-{n}", "host": "hv-a"} for n in range(6)]
    served.start(served.steered.put_fleet({"vms": [VM, *bare]})).result()

    shown = served.run("host", "rules", "hv-a")
    asked = json.loads(served.run("host", "rules", "hv-a", "--json").stdout)

    assert shown.exit_code == 0
    assert shown.stdout == asked["rules"]
    assert shown.stdout.startswith("# Made by `forewarned host rules`.")
    assert shown.stderr == (
        "6 VMs left out: the fleet has no 'interface' for bare-0, bare-1, bare-2, bare-3, bare-4,"
        " …. Nothing that they send is marked or checked.\n"
    )


def test_rules_may_be_for_vms_of_other_hosts_and_another_address(served: Served) -> None:
    served.start(served.steered.put_fleet({"vms": [VM]})).result()

    shown = served.run("host", "rules", "hv-b", "--every-vm", "--metadata", "10.0.0.1").stdout

    assert '"tap-7" : 7' in shown
    assert "ip daddr != 10.0.0.1 accept" in shown


def test_a_host_without_vms_has_no_rules(served: Served) -> None:
    refused = served.run("host", "rules", "none")

    assert refused.exit_code == 1
    assert "no VM runs on a host named 'none'" in refused.stderr
