"""Settings: which addresses listeners may have, and who may reach them there."""

from pathlib import Path

import pytest

from forewarned.config.values import Address
from forewarned.runtime.settings import ControlAccess
from tests.runtime.settings.resolving import problems, resolve


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_emulator_listens_to_vms_on_loopback_only() -> None:
    told = problems(FOREWARNED_METADATA="0.0.0.0:80")
    service = resolve(flags={"mode": "service"}, FOREWARNED_METADATA="169.254.169.254:80").settings

    assert told.startswith(
        "environment FOREWARNED_METADATA: metadata = 0.0.0.0:80: in emulator mode"
    )
    assert service.metadata == Address("169.254.169.254", 80)


def test_a_listener_that_asks_nobody_who_they_are_is_on_loopback_only() -> None:
    """S12: and so is an emulator's, whatever it asks."""
    off_loopback: dict[str, object] = {"control": "10.0.0.1:9000"}
    for access in ("open", "token"):
        told = problems(flags=off_loopback | {"control_access": access})
        assert told.startswith("flag --control: control = 10.0.0.1:9000: an emulator is for")
        assert "--mode service" in told

    told = problems(flags=off_loopback | {"mode": "service", "control_access": "open"})
    assert told.startswith(
        "flag --control-access: control_access = open: anyone who reaches 10.0.0.1"
    )
    assert "use token" in told


def test_control_is_served_off_loopback_over_tls_to_those_who_show_a_token() -> None:
    """S12."""
    settings = resolve(flags={"mode": "service", "control": "0.0.0.0:9000"}).settings

    assert settings.control == Address("0.0.0.0", 9000)
    assert settings.control_access is ControlAccess.TOKEN
    assert settings.control_is_tls
    assert not resolve(flags={"mode": "service"}).settings.control_is_tls


def test_a_service_asks_for_a_token_unless_told_otherwise_and_an_emulator_if_told_to() -> None:
    """S12."""
    assert resolve().settings.control_access is ControlAccess.OPEN
    assert resolve(FOREWARNED_CONTROL_ACCESS="token").settings.control_access == "token"
    assert resolve('mode = "service"').settings.control_access is ControlAccess.TOKEN
    told = resolve('mode = "service"\ncontrol_access = "open"').settings
    assert told.control_access is ControlAccess.OPEN


def test_arm_is_served_off_loopback_only_where_people_have_to_sign_in() -> None:
    told = problems(flags={"arm": "10.0.0.1:9000"})
    service = resolve(flags={"mode": "service", "arm": "10.0.0.1:9000"}).settings

    assert told.startswith("flag --arm: arm = 10.0.0.1:9000: emulator mode requires no sign-in")
    assert service.arm == Address("10.0.0.1", 9000)


NETWORK: dict[str, object] = {"emulator_access": "network"}
EVERYWHERE: dict[str, object] = {
    "metadata": "0.0.0.0:8169",
    "control": "0.0.0.0:8170",
    "arm": "0.0.0.0:8171",
}


def test_an_emulator_that_is_open_to_its_network_may_listen_on_any_address() -> None:
    """S4: only if someone said so."""
    on_network = resolve(flags=NETWORK | EVERYWHERE | {"control_access": "open"}).settings

    assert on_network.metadata == Address("0.0.0.0", 8169)
    assert on_network.is_on_network
    assert not resolve().settings.is_on_network


def test_an_emulator_on_a_network_is_open_to_it_only_if_someone_said_so() -> None:
    """S12: deny by default."""
    told = problems(flags=NETWORK | EVERYWHERE).splitlines()

    assert [line.split(":")[0] for line in told] == ["flag --control", "flag --arm"]
    assert "--control-access open" in told[0]
    assert resolve(flags=NETWORK | {"metadata": "0.0.0.0:8169"}).settings.control.is_loopback


def test_an_emulators_control_is_encrypted_where_it_asks_for_tokens() -> None:
    """S12: containers beside an open one speak plain HTTP, and have no secret to send."""
    open_to_all = resolve(flags=NETWORK | EVERYWHERE | {"control_access": "open"}).settings
    with_tokens = resolve(flags=NETWORK | EVERYWHERE | {"control_access": "token"}).settings

    assert not open_to_all.control_is_tls
    assert with_tokens.control_is_tls


def test_a_service_is_never_open_to_its_network() -> None:
    """S4: no caller of a service may choose which VM it is."""
    told = problems(flags=NETWORK | {"mode": "service"})

    assert told.startswith("flag --emulator-access: emulator_access = network: service mode")
