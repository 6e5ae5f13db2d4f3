"""Faults, as people ask for them."""

import json

import pytest

from tests.cli.served import Served
from tests.cli.test_without_server import completed


def test_a_fault_is_added_shown_and_cleared(served: Served) -> None:
    added = served.run("faults", "add", "status", "--status", "500", "--times", "2")
    shown = served.run("faults")
    listed = served.run("faults", "list")
    cleared = served.run("faults", "clear")

    table = "Fault What       Delay For      Used\n1     status 500       every VM 0 of 2\n"
    assert added.stdout == shown.stdout == listed.stdout == table
    assert cleared.stdout == "removed 1 fault\n"
    assert "no faults" in served.run("faults").stdout


def test_all_that_is_said_of_a_fault_reaches_the_server(served: Served) -> None:
    words = "faults add status --status 429 --retry-after 9s --delay 2s --times 3 --vm web"

    result = served.run(*words.split(), "--method", "post", "--json")

    assert json.loads(result.stdout) == {
        "id": "1",
        "kind": "status",
        "status": 429,
        "retry_after": "9s",
        "delay": "2s",
        "times": 3,
        "used": 0,
        "vm": "web",
        "method": "POST",
    }
    assert "POST web" in served.run("faults").stdout


def test_one_fault_is_cleared_by_its_id(served: Served) -> None:
    served.run("faults", "add", "reset")
    served.run("faults", "add", "empty")

    assert served.run("faults", "clear", "1").stdout == "removed 1 fault\n"
    assert "empty" in served.run("faults").stdout
    assert "reset" not in served.run("faults").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("faults clear 9", 1, "no fault has the id '9'"),
        ("faults add status", 1, "needs a status"),
        ("faults add status --status 200", 2, "400"),
        ("faults add gone", 2, "truncated"),
        ("faults add reset --vm wed", 1, "did you mean web?"),
    ],
)
def test_what_can_not_be_is_refused(served: Served, words: str, code: int, said: str) -> None:
    result = served.run(*words.split())

    assert result.exit_code == code
    assert said in result.stderr
    assert served.steered.services.use_cases.faults.show() == ()


def test_vms_and_faults_are_completed_from_the_server(served: Served) -> None:
    served.run("faults", "add", "reset")

    assert completed("faults add reset --vm w", served.address) == ["web"]
    assert completed("faults clear 1", served.address) == ["1"]
    assert completed("faults add st", served.address) == ["status", "stale"]
