"""MAC addresses: the same ones every time, and no two alike."""

import ipaddress
import re

from hypothesis import given
from hypothesis import strategies as st

from forewarned.service.azure.equipment import dashed, mac_address

ID = "13f56399-bd52-4150-9748-7190aae1ff21"

addresses = st.one_of(
    st.ip_addresses(network="10.0.0.0/8"), st.ip_addresses(v=6, network="fd00::/104")
)


@given(first=addresses, second=addresses)
def test_vms_with_different_addresses_have_different_macs(
    first: ipaddress.IPv4Address | ipaddress.IPv6Address,
    second: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    macs = mac_address(str(first), ID), mac_address(str(second), ID)

    assert (macs[0] == macs[1]) == (first == second)
    assert re.fullmatch("[0-9A-F]{12}", macs[0])
    # A MAC address with this bit is that of a group of stations.
    assert not int(macs[0][:2], 16) & 1


def test_a_vm_has_another_mac_for_each_interface() -> None:
    macs = [mac_address("10.0.0.4", ID, number) for number in range(8)]

    assert len(set(macs)) == 8
    assert macs[0] == mac_address("10.0.0.4", "another") == "000D3A000004"
    assert macs[1] == mac_address("10.0.0.5", ID, 1)


def test_a_vm_without_an_address_has_a_mac_by_its_id() -> None:
    assert mac_address("", ID) == mac_address("", ID.upper()) != mac_address("", "another")


def test_the_control_plane_writes_macs_with_hyphens() -> None:
    assert dashed(mac_address("127.8.0.4", ID)) == "00-0D-3A-08-00-04"
