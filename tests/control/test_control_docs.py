import re
from pathlib import Path

from forewarned.control.http.errors import STATUS, code
from forewarned.control.v1.app import OPERATIONS

PAGE = (Path(__file__).parents[2] / "docs" / "control-api.md").read_text()


def test_every_operation_is_in_the_manual() -> None:
    documented = set(re.findall(r"# ((?:GET|POST|PUT|DELETE) /(?:v1/|metrics)[^\s:,]*)", PAGE))

    assert documented == {f"{each.method} {each.template}" for each in OPERATIONS}


def test_every_conflict_is_in_the_manual() -> None:
    [row] = (line for line in PAGE.splitlines() if line.startswith("| 409 "))

    conflicts = {code(kind) for kind, status in STATUS.items() if status == 409}
    assert set(re.findall(r"`(\w+)`", row)) == conflicts
