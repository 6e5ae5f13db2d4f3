"""Where the endpoint is looked for, in which order, and what is said if it is nowhere."""

import os
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.client import EndpointNotFoundError
from forewarned.client._endpoint import dhcp as _dhcp
from forewarned.client._endpoint.discovery import Discovery, is_answered
from forewarned.client._endpoint.leases import endpoint_in
from forewarned.client._session import Session
from tests.client.scripted import RESET, an_answer, answering

ADDRESS = IPv4Address("168.63.129.16")

DHCLIENT = """
lease {
  interface "eth0";
  fixed-address 10.0.0.4;
  option unknown-245 0a:00:00:01;
}
lease {
  interface "eth0";
  option unknown-245 a8:3f:81:10;
  renew 2 2026/11/17 02:11:12;
}
"""
NETWORKD = "# This is private data. Do not parse.\nADDRESS=10.0.0.4\nOPTION_245=a83f8110\n"
NETWORK_MANAGER = (
    "# This is private data. Do not parse.\nADDRESS=10.0.0.4\nOPTION_245=a8:3f:81:10\n"
)
NETWORK_MANAGER_DHCLIENT = 'lease {\n  interface "eth0";\n  option unknown-245 a8:3f:81:10;\n}\n'
NETWORK_MANAGER_DEVICE = "[dhcp4]\nip_address=10.0.0.4\nunknown_245=a8:3f:81:10\n"


@pytest.mark.parametrize(
    "lease",
    [
        DHCLIENT,
        NETWORKD,
        NETWORK_MANAGER,
        NETWORK_MANAGER_DHCLIENT,
        NETWORK_MANAGER_DEVICE,
        "private_245=168.63.129.16\n",
        'option unknown-245 "\\250?\\201\\020";',
    ],
)
def test_every_clients_lease_is_read(lease: str) -> None:
    assert endpoint_in(lease) == ADDRESS


@pytest.mark.parametrize(
    "lease",
    ["", "OPTION_245=", "OPTION_245=a83f81", "OPTION_2450=a83f8110", "OPTION_245=a83f811000",
     "option unknown-245 zz:3f:81:10;", "OPTION_245=00000000", "option unknown-245 1ff:1:1:1;",
     "private_245=1.2.3\n"],
)  # fmt: skip
def test_a_lease_without_an_address_has_none(lease: str) -> None:
    assert endpoint_in(lease) is None


@given(st.text())
def test_no_lease_is_too_odd(text: str) -> None:
    endpoint_in(f"option unknown-245 {text};\nOPTION_245={text}\n")


def nowhere(_: str) -> bool:
    return False


def a_discovery(
    folder: Path,
    *,
    probe: Callable[[str], bool] = nowhere,
    dhcp: Callable[[], IPv4Address | None] = lambda: None,
    **environment: str,
) -> Discovery:
    return Discovery(
        environment=environment,
        well_known="192.0.2.1",
        leases=[str(folder / "*.lease")],
        is_answered=probe,
        ask_dhcp=dhcp,
    )


def test_the_places_are_looked_at_in_order(tmp_path: Path) -> None:
    lease = tmp_path / "eth0.lease"
    lease.write_text(NETWORKD)
    stored = {"SCHEDULEDEVENTSIP": "10.9.9.9"}
    given = {"FOREWARNED_ENDPOINT": "http://127.0.0.1:8169/vm/web_0"}

    def dhcp() -> IPv4Address:
        return IPv4Address("10.8.8.8")

    def found(*, probe: bool, **environment: str) -> str:
        return a_discovery(tmp_path, probe=lambda _: probe, dhcp=dhcp, **environment).find()

    assert found(probe=True, **given) == "http://127.0.0.1:8169/vm/web_0"
    assert found(probe=True, **stored) == "http://192.0.2.1"
    assert found(probe=False, **stored) == "http://168.63.129.16"
    lease.unlink()
    assert found(probe=False, **stored) == "http://10.9.9.9"
    assert found(probe=False) == "http://10.8.8.8"


def test_the_newest_lease_counts(tmp_path: Path) -> None:
    old, new = tmp_path / "b.lease", tmp_path / "a.lease"
    old.write_text("OPTION_245=0a000001")
    new.write_text(NETWORKD)
    os.utime(old, (1, 1))

    assert a_discovery(tmp_path).find() == "http://168.63.129.16"


def _forbidden() -> IPv4Address:
    raise PermissionError


def _in_use() -> IPv4Address:
    raise OSError(98, "Address already in use")


@pytest.mark.parametrize(
    ("dhcp", "reason"),
    [
        (lambda: None, "no DHCP server offers option 245"),
        (_forbidden, "asking a DHCP server needs root"),
        (_in_use, "Address already in use"),
    ],
)
def test_an_endpoint_that_is_nowhere_is_told_with_all_that_was_tried(
    tmp_path: Path, dhcp: Callable[[], IPv4Address | None], reason: str
) -> None:
    with pytest.raises(EndpointNotFoundError, match=reason) as failed:
        a_discovery(tmp_path, dhcp=dhcp, SCHEDULEDEVENTSIP="localhost").find()

    assert failed.value.tried[:4] == (
        "FOREWARNED_ENDPOINT is not set",
        "no metadata service answers at 192.0.2.1",
        "no DHCP lease has option 245",
        "SCHEDULEDEVENTSIP is 'localhost', which is not an address",
    )


@pytest.mark.parametrize(
    ("answer", "is_there"),
    [
        (an_answer(b'{"apiVersions": ["2017-03-01"]}'), True),
        (an_answer(b"", "410 Gone"), True),
        (an_answer(b"", "429 Slow"), True),
        (an_answer(b"", "500 Oops"), True),
        (an_answer(b"latest\n"), False),  # other clouds' metadata
        (an_answer(b"", "404 Not Found"), False),
        (an_answer(b"", "302 Found", "Location: http://x/"), False),
        (RESET, False),
        (b"220 smtp\r\n\r\n", False),
    ],
)
def test_only_a_metadata_service_of_azures_kind_counts_as_an_answer(
    answer: bytes, is_there: bool
) -> None:
    with answering(answer) as service:
        assert is_answered(service.address) is is_there


def test_nobody_at_the_address_is_no_answer() -> None:
    with answering(RESET) as service:
        address = service.address

    assert not is_answered(address)


def test_what_was_found_once_is_not_given_up_for_want_of_something_better(tmp_path: Path) -> None:
    nothing = a_discovery(tmp_path)
    session = Session(None, api_version="2020-07-01", timeout=1, first_timeout=1, resource=None)
    session._discovery = nothing
    with pytest.raises(EndpointNotFoundError):
        session._find()

    session._discovery = replace(nothing, environment={"FOREWARNED_ENDPOINT": "http://10.0.0.1"})
    found = session._find()
    session._discovery = nothing

    assert session._find() == found == "http://10.0.0.1"


# ── packets ──

MAC = bytes.fromhex("001122334455")
TRANSACTION = 0x12345678


def a_reply(
    *options: bytes, transaction: int = TRANSACTION, op: int = 2, mac: bytes = MAC
) -> bytes:
    asked = _dhcp.discover(transaction=transaction, mac=mac)
    return bytes([op]) + asked[1:240] + b"".join(options) + b"\xff"


OFFER = bytes([53, 1, 2])
ENDPOINT = bytes([245, 4]) + ADDRESS.packed


def read(packet: bytes) -> IPv4Address | None:
    return _dhcp.endpoint_of(packet, transaction=TRANSACTION, mac=MAC)


def test_a_discover_asks_for_option_245_by_broadcast() -> None:
    packet = _dhcp.discover(transaction=TRANSACTION, mac=MAC)

    assert packet[:4] == bytes([1, 1, 6, 0])
    assert packet[4:8] == TRANSACTION.to_bytes(4, "big")
    assert packet[10:12] == b"\x80\x00"
    assert packet[28:34] == MAC
    assert packet[236:240] == b"\x63\x82\x53\x63"
    assert 245 in packet[240:252]
    assert len(packet) == 300


@pytest.mark.parametrize(
    "packet",
    [
        a_reply(OFFER, ENDPOINT),
        a_reply(b"\0\0", OFFER, bytes([3, 4, 10, 0, 0, 1]), ENDPOINT),
        a_reply(OFFER, ENDPOINT[:1] + b"\x02" + ENDPOINT[2:4], b"\xf5\x02" + ENDPOINT[4:]),
        a_reply(bytes([53, 1, 5]), ENDPOINT),
    ],
)
def test_an_offer_tells_the_address(packet: bytes) -> None:
    assert read(packet) == ADDRESS


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        a_reply(OFFER, ENDPOINT)[:238],
        a_reply(OFFER),
        a_reply(ENDPOINT),
        a_reply(bytes([53, 1, 6]), ENDPOINT),
        a_reply(OFFER, ENDPOINT, op=1),
        a_reply(OFFER, ENDPOINT, transaction=1),
        a_reply(OFFER, ENDPOINT, mac=bytes(6)),
        a_reply(OFFER, bytes([245, 3, 1, 2, 3])),
        a_reply(OFFER, bytes([245, 200, 1])),
        a_reply(OFFER, ENDPOINT).replace(b"\x63\x82\x53\x63", b"\0\0\0\0"),
    ],
)
def test_what_is_no_offer_to_us_tells_nothing(packet: bytes) -> None:
    assert read(packet) is None


@given(st.binary(max_size=400))
def test_no_packet_is_too_odd(tail: bytes) -> None:
    head = a_reply()[:240]

    read(head + tail)
    read(tail)
