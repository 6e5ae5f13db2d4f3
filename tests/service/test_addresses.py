"""Addresses as text: who is one caller, however they are written."""

import pytest

from forewarned.service.fleet.addresses import neighbourhood


@pytest.mark.parametrize(
    ("address", "of"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:0:1::5", "2001:db8:0:1::/64"),
        ("2001:DB8:0:1:ffff::", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::5", "2001:db8:0:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("somebody", "somebody"),
    ],
)
def test_addresses_of_one_household_count_as_one(address: str, of: str) -> None:
    assert neighbourhood(address) == of
