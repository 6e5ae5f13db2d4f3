"""A host with real guests is emptied, and filled again."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.end_to_end.namespaces import within
from tests.end_to_end.supervised_server import wait_until
from tests.lab.service import Service
from tests.lab.test_service import LONGEST_GAP

GUESTS = ("db", "web")


@contextmanager
def drained(service: Service, host: str) -> Iterator[Any]:
    """As it is when it is over. Afterwards guests may be moved there again."""
    service.ask("POST", f"/v1/hosts/{host}/drain", {})
    try:
        yield until(service, host, "Empty", "Stuck")
    finally:
        service.ask("DELETE", f"/v1/hosts/{host}/drain")


def until(service: Service, host: str, *states: str) -> Any:  # JSON
    path = f"/v1/hosts/{host}/drain"
    # Guests are copied one after the other, without KVM, on a busy machine.
    wait_until(lambda: service.ask("GET", path)["state"] in states, patience=180)
    return service.ask("GET", path)


def by_name(drain: Any) -> dict[str, Any]:  # JSON
    return {row["vm"]: row for row in drain["vms"]}


def polls_on(service: Service, name: str) -> None:
    serial = service.guests[name].serial
    serial.wait_for("poll", since=len(serial.lines))


def metrics(service: Service) -> str:
    def ask() -> str:
        with closing(HTTPConnection(service.server.control, timeout=60)) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()

    return within(service.lab.service, ask)


def listed(service: Service, host: str) -> list[str]:
    with service.lab.libvirt(host) as connection:
        return [domain.name() for domain in connection.listAllDomains()]


@pytest.fixture
def together(service: Service) -> tuple[str, str]:
    """The host that both guests are on, and the other one."""
    service.assign()
    if service.host("web") != service.host("db"):
        service.wait_until_over(service.schedule("Freeze", "web"))
    here = service.host("db")
    [other] = set(service.lab.hosts) - {here}
    return here, other


def test_a_drain_moves_a_guest_that_goes_on_polling_and_libvirt_lists_none(
    service: Service, migrations: "Counter[str]"
) -> None:
    """It is the same boot, on the other host, and the host is empty as libvirt itself has it."""
    service.assign()
    source, serial = service.host("db"), service.guests["db"].serial
    here = [name for name in GUESTS if service.host(name) == source]
    boots, began = serial.boots(), serial.last_at

    with drained(service, source) as drain:
        polls_on(service, "db")

        row = by_name(drain)["db"]
        assert (drain["state"], drain["reason"]) == ("Empty", "")
        assert listed(service, source) == []
        assert {service.lab.host_of(name) for name in GUESTS} == {row["moved_to"]} != {source}
        assert migrations == dict.fromkeys(here, 1)
        assert serial.boots() == boots
        assert serial.longest_gap(since=began) < LONGEST_GAP
        assert 0 <= row["away"] < serial.last_at - began


@pytest.mark.thorough
def test_guests_return_to_a_host_that_was_drained(
    service: Service, together: tuple[str, str], migrations: "Counter[str]"
) -> None:
    here, _ = together
    boots = {name: service.guests[name].serial.boots() for name in GUESTS}

    service.ask("POST", f"/v1/hosts/{here}/drain", {})
    until(service, here, "Empty")
    service.ask("DELETE", f"/v1/hosts/{here}/drain?return=true")
    over = until(service, here, "Canceled")

    assert over["reason"].endswith("; all VMs are back")
    assert {service.lab.host_of(name) for name in GUESTS} == {here}
    assert migrations == {"db": 2, "web": 2}
    assert {name: service.guests[name].serial.boots() for name in GUESTS} == boots


@pytest.mark.thorough
def test_a_drain_goes_on_past_a_guest_whose_migration_fails_and_says_why(
    service: Service, together: tuple[str, str]
) -> None:
    """The guest runs on where it was, and each of its events ends with the cause."""
    here, other = together
    service.assign(web="misled")
    boots = service.guests["web"].serial.boots()

    with drained(service, here) as drain:
        polls_on(service, "web")
        rows = by_name(drain)
        explained = service.ask("GET", f"/v1/events/{rows['web']['event_id']}/explain")
        numbers = metrics(service)

    assert (drain["state"], drain["reason"]) == ("Stuck", "can't be moved: web")
    assert (rows["db"]["state"], service.lab.host_of("db")) == ("Moved", other)
    assert (rows["web"]["state"], rows["web"]["tries"]) == ("Blocked", 3)
    assert "3 events have failed, the last: not carried out: libvirt on " in rows["web"]["reason"]
    assert service.lab.host_of("web") == here
    assert service.guests["web"].serial.boots() == boots
    assert "ended before the work was done: libvirt on " in explained["why"]
    assert 'forewarned_drains{state="Stuck"} 1.0' in numbers
    assert 'forewarned_events_not_carried_out_total{type="Freeze"}' in numbers


@pytest.mark.thorough
def test_no_guest_is_moved_to_a_host_that_was_drained(
    service: Service, together: tuple[str, str]
) -> None:
    here, other = together
    with drained(service, here):
        service.ask("POST", f"/v1/hosts/{other}/drain", {})
        planned = until(service, other, "Planned")
        freeze = service.schedule("Freeze", "web")
        service.wait_until_over(freeze)

    reason = f"no host can take the VM: {here} is being drained"
    assert {row["reason"] for row in planned["vms"]} == {reason}
    assert reason in service.history(freeze)
    assert {service.lab.host_of(name) for name in GUESTS} == {other}
