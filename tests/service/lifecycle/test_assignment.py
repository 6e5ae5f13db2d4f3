"""Which actuator a VM's tasks are for."""

import pytest

from forewarned.service.lifecycle.assignment import by_host, simulated
from tests.builders import a_resource

HOSTS = {"rack1": ["hv-a*", "hv-1"], "rack2": ["hv-b*", "both"], "rack3": ["both"]}


@pytest.mark.parametrize(
    ("host", "actuator"),
    [("hv-a1", "rack1"), ("HV-1", "rack1"), ("hv-b", "rack2"), ("both", ""), ("other", "")],
)
def test_a_vm_has_the_one_actuator_that_its_host_has(host: str, actuator: str) -> None:
    assert by_host(HOSTS)(a_resource(host=host)) == actuator


def test_what_the_fleet_says_of_a_vm_comes_first() -> None:
    assert by_host(HOSTS)(a_resource(host="hv-a1", actuator="scripts")) == "scripts"


def test_in_an_emulator_all_of_it_is_simulated() -> None:
    assert simulated(a_resource(actuator="rack1")) == "simulated"
