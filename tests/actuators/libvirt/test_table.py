"""`driver = "libvirt"` in a settings file."""

from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.actuators import settings
from forewarned.actuators.driver import Effect
from forewarned.actuators.settings import ActuatorSettingsError
from forewarned.actuators.table import ActuatorTable
from forewarned.core.model import EventType
from tests.packages import need_libvirt_library

HEAD = '[actuators.rack1]\ndriver = "libvirt"\nuri = "qemu+tls://{host}/system"\n'


@pytest.fixture(autouse=True)
def _library() -> None:
    need_libvirt_library()


def read(tmp_path: Path, text: str) -> ActuatorTable:
    path = tmp_path / "forewarned.toml"
    path.write_text(HEAD + text)
    return settings.load(path).actuators["rack1"]


def test_an_action_has_what_to_do_and_what_else(tmp_path: Path) -> None:
    table = read(tmp_path, 'freeze = { do = "live-migrate", else = "hold", patience = "20m" }')

    action = table.procedures()[EventType.FREEZE].action
    assert (action.do, action.effect) == ("live-migrate", Effect.MOVES)
    assert (action.otherwise, action.otherwise_effect) == ("hold", Effect.HOLDS)
    assert action.patience == timedelta(minutes=20)


@pytest.mark.parametrize(
    ("text", "by_switch"),
    [
        ('{ do = "restart" }', True),
        ('{ do = "acpi", else = "restart", patience = "1m" }', False),
        ('{ do = "reset" }', False),
    ],
)
def test_only_a_restart_switches_the_vm_off_and_on_for_sure(
    tmp_path: Path, text: str, by_switch: bool
) -> None:
    table = read(tmp_path, f"reboot = {text}")

    assert table.procedures()[EventType.REBOOT].action.by_switch is by_switch


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no type of event has an action"),
        ('reboot = { do = "cold-move" }', "reboot can be acpi, reset or restart, not cold-move"),
        ('freeze = { do = "hold", else = "reset" }', "freeze can be live-migrate or hold"),
        ('reboot = { do = "kick" }', "expected"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ActuatorSettingsError) as caught:
        read(tmp_path, text)

    assert why in "\n".join(caught.value.mistakes)


async def test_the_driver_is_opened_without_a_connection(tmp_path: Path) -> None:
    table = read(tmp_path, 'reboot = { do = "reset" }')

    async with table.opened(tmp_path) as driver:
        assert driver is not None
