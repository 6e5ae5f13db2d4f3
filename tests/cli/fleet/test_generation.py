"""Fleet files made to measure."""

import ipaddress
import json
from collections import Counter
from pathlib import Path

import pytest

from forewarned.control.fleet.file import load_fleet, parse_fleet
from forewarned.core.model import ScopeKind
from tests.cli.served import invoke
from tests.service.fleet.expansion import expand

ELSEWHERE = ipaddress.ip_network("192.0.2.0/24")


def sizes(*words: str) -> Counter[tuple[ScopeKind, int]]:
    """How many scopes there are of each kind and size."""
    result = invoke("fleet", "generate", *words)
    assert result.exit_code == 0, result.output
    plan = parse_fleet(result.stdout, source="generated")
    planned = expand(plan, address_range=ELSEWHERE)
    assert all(b.address.startswith("127.") for each in planned for b in each.bindings)
    return Counter((each.scope.kind, len(each.bindings)) for each in planned)


def test_a_generated_fleet_is_scale_sets_and_some_availability_sets() -> None:
    assert sizes("--vms", "12345") == {
        (ScopeKind.PLACEMENT_GROUP, 100): 111,
        (ScopeKind.AVAILABILITY_SET, 100): 12,
        (ScopeKind.PLACEMENT_GROUP, 45): 1,
    }


def test_the_number_of_scopes_may_be_given() -> None:
    assert sizes("--vms", "1000", "--scopes", "30", "--kind", "scale-sets") == {
        (ScopeKind.PLACEMENT_GROUP, 34): 10,
        (ScopeKind.PLACEMENT_GROUP, 33): 20,
    }


def test_there_may_be_fewer_vms_than_scopes() -> None:
    assert sizes("--vms", "3", "--scopes", "5", "--kind", "scale-sets") == {
        (ScopeKind.PLACEMENT_GROUP, 1): 3
    }


def test_so_may_the_vms_of_each() -> None:
    assert sizes("--vms", "1000", "--per-scope", "300", "--kind", "availability-sets") == {
        (ScopeKind.AVAILABILITY_SET, 300): 3,
        (ScopeKind.AVAILABILITY_SET, 100): 1,
    }


def test_vms_may_stand_alone() -> None:
    assert sizes("--vms", "7", "--kind", "vms") == {(ScopeKind.VIRTUAL_MACHINE, 1): 7}


def test_a_million_vms_are_a_small_file_that_reads_at_once(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"

    result = invoke("fleet", "generate", "--vms", "1000000", "-o", str(file))

    assert (result.exit_code, result.output) == (0, "")
    assert file.read_text().startswith("# 1,000,000 VMs in 10,000 scopes")
    assert file.stat().st_size < 100_000


def test_a_generated_fleet_can_be_had_as_the_api_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    invoke("fleet", "generate", "--vms", "250", "-o", str(file))

    result = invoke("fleet", "generate", "--vms", "250", "--json")

    assert json.loads(result.stdout)["address_range"] == str(load_fleet(file).address_range)


@pytest.mark.parametrize(
    "words",
    [
        ["--vms", "0"],
        ["--vms", "4000001"],
        ["--vms", "1000", "--per-scope", "101"],
        ["--vms", "1000", "--scopes", "9"],
        ["--vms", "1000", "--scopes", "9", "--per-scope", "10"],
        ["--vms", "10", "--per-scope", "2", "--kind", "vms"],
        ["--vms", "2000", "--scopes", "1", "--kind", "availability-sets"],
        [],
    ],
)
def test_what_no_fleet_can_be_is_wrong_usage(words: list[str]) -> None:
    result = invoke("fleet", "generate", *words)

    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_file_that_cant_be_written_is_named(tmp_path: Path) -> None:
    result = invoke("fleet", "generate", "--vms", "1", "-o", str(tmp_path / "no" / "fleet.toml"))

    assert result.exit_code == 1
    assert "no/fleet.toml" in result.stderr
