"""Events from the schedule to the guest and back: the service, its actuator, libvirt, real guests."""

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.end_to_end.namespaces import ip
from tests.lab.service import Service

LONGEST_GAP = 3.0
"""Seconds between two polls of a guest that is moved."""


def test_a_reboot_boots_the_guest_once_and_is_over_when_it_reads_again(service: Service) -> None:
    """I22. The guest reads of it, approves it, is asked by its power button, boots, and reads."""
    service.assign()
    serial = service.guests["web"].serial
    before, said = serial.boots(), len(serial.lines)

    reboot = service.schedule("Reboot", "web")
    service.wait_until_started(reboot)
    with _cut_off(service, "web"):
        booted = serial.wait_for("booted", since=said)
        serial.wait_for("document unreachable", since=booted)
        while_it_read_nothing = service.status(reboot), service.actions(reboot)
    service.wait_until_over(reboot)
    serial.wait_for("poll 3$", since=said)

    texts = [line.text for line in serial.lines[said:]]
    assert f"approves {reboot}" in texts
    assert "button" in texts
    assert while_it_read_nothing[0] == "Started"
    assert "restored" not in while_it_read_nothing[1]
    assert service.actions(reboot)[-3:] == ["carried_out", "restored", "completed"]
    assert len(set(serial.boots())) == len(set(before)) + 1 == len(serial.boots())


@pytest.mark.thorough  # test_drain.py moves a guest that goes on polling, by a Freeze
def test_a_freeze_moves_the_guest_while_it_goes_on_polling(
    service: Service, migrations: "Counter[str]"
) -> None:
    """It is the same boot, on another host."""
    service.assign()
    source, serial = service.host("web"), service.guests["web"].serial
    boots, said, began = serial.boots(), len(serial.lines), serial.last_at

    freeze = service.schedule("Freeze", "web")
    service.wait_until_over(freeze)
    serial.wait_for(r'document .*"Events":\[\]', since=said)

    assert {source, service.host("web")} == {"hv-a", "hv-b"}
    assert migrations["web"] == 1
    assert serial.boots() == boots
    assert serial.longest_gap(since=began) < LONGEST_GAP


@pytest.mark.thorough  # test_killed.py has the same, with an actuator that dies at a chosen step
def test_a_migration_outlives_the_actuator_that_began_it(
    service: Service, migrations: "Counter[str]"
) -> None:
    """I22: the server starts its actuator again, which looks, and does nothing again."""
    service.assign()
    source, serial = service.host("web"), service.guests["web"].serial
    boots, said, lives = serial.boots(), len(serial.lines), service.actuators()

    freeze = service.schedule("Freeze", "web")
    serial.wait_for('document .*"EventStatus":"Started"', since=said)
    os.kill(lives[-1], signal.SIGKILL)
    service.wait_until_over(freeze)

    assert len(service.actuators()) == len(lives) + 1
    assert {source, service.host("web")} == {"hv-a", "hv-b"}
    assert migrations["web"] == 1
    assert serial.boots() == boots


def test_a_migration_that_fails_ends_the_event_with_its_cause(service: Service) -> None:
    service.assign(web="misled")
    source, serial = service.host("web"), service.guests["web"].serial
    boots = serial.boots()

    freeze = service.schedule("Freeze", "web")
    service.wait_until_over(freeze)
    serial.wait_for("poll", since=len(serial.lines))

    assert service.host("web") == service.lab.host_of("web") == source
    assert serial.boots() == boots
    assert "not carried out: libvirt on " in service.history(freeze)


@contextlib.contextmanager
def _cut_off(service: Service, vm: str) -> Iterator[None]:
    """Without a network: what the guest says is still heard."""
    namespace = service.lab.hosts[service.lab.host_of(vm)].namespace
    port = ("-n", namespace, "link", "set", service.guests[vm].plan.interface)
    ip(*port, "down")
    try:
        yield
    finally:
        ip(*port, "up")
