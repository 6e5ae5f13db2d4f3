import re
from pathlib import Path

from forewarned.control.v1.app import OPERATIONS
from forewarned.control.v1.errors import code
from forewarned.core import errors as core
from forewarned.core.errors import Category, RefusalError
from forewarned.service import errors as service
from tests.control.error_types import errors_of

PAGE = (Path(__file__).parents[2] / "docs" / "control-api.md").read_text()


def test_every_operation_is_in_the_manual() -> None:
    documented = set(
        re.findall(r"# ((?:GET|POST|PUT|PATCH|DELETE) /(?:v1/|metrics)[^\s:,]*)", PAGE)
    )

    assert documented == {f"{each.method} {each.template}" for each in OPERATIONS}


def test_every_conflict_is_in_the_manual() -> None:
    [row] = (line for line in PAGE.splitlines() if line.startswith("| 409 "))

    # Those of `service/azure` and of the console are for ARM and for the console to answer.
    ours = {core.__name__, service.__name__}
    conflicts = {
        code(kind)
        for kind in errors_of(RefusalError)
        if kind.category is Category.CONFLICT and kind.__module__ in ours
    }
    assert set(re.findall(r"`(\w+)`", row)) == conflicts
