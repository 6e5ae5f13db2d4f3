"""What stands in a line of the server's log."""

import json
import logging
from collections.abc import Iterator

import pytest

from notbefore import logs
from notbefore.core.ids import ResourceName, ScopeId
from notbefore.core.transitions import Activated, ResourceAdded
from notbefore.service.ports import Commit
from tests.builders import NOON

SCOPE = ScopeId("scope1")


@pytest.fixture(autouse=True)
def _root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("as_json", [False, True])
def test_facts_stand_beside_the_message_and_no_colours_of_a_library(
    capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    logs.configure(level="info", as_json=as_json, stamp=lambda: NOON)
    extra = {"color_message": "\033[1mup\033[0m", "port": 8170}

    logging.getLogger("uvicorn.error").info("up", extra=extra)

    [line] = capsys.readouterr().err.splitlines()
    assert "8170" in line
    assert "color" not in line


def test_what_befalls_many_vms_of_a_scope_alike_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure(level="info", as_json=True, stamp=lambda: NOON)
    names = [ResourceName(f"vm{number}") for number in range(25)]
    added = tuple(ResourceAdded(scope_id=SCOPE, at=NOON, resource=name) for name in names)

    logs.log_commit(Commit(transitions=(*added, Activated(scope_id=SCOPE, at=NOON))))

    activated, many = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert activated["message"] == "activated"
    assert many["message"] == "resource_added"
    assert many["resources"] == [*names[:9], "and 16 more"]


def test_a_name_can_not_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """S14."""
    logs.configure(level="info", as_json=False, stamp=lambda: NOON)
    added = ResourceAdded(scope_id=SCOPE, at=NOON, resource=ResourceName("vm\n2026 ERROR forged"))

    logs.log_commit(Commit(transitions=(added,)))

    assert len(capsys.readouterr().err.splitlines()) == 1
