import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarned.control.v1.app import OPERATIONS
from forewarned.control.v1.errors import code
from forewarned.control.v1.metrics import Metrics
from forewarned.core.errors import Category, RefusalError
from forewarned.service.drains.model import DrainState
from tests.control.error_types import errors_of

PAGE = (Path(__file__).parents[2] / "docs" / "control-api.md").read_text()


def test_every_operation_is_in_the_manual() -> None:
    documented = set(
        re.findall(r"# ((?:GET|POST|PUT|PATCH|DELETE) /(?:v1/|metrics)[^\s:,]*)", PAGE)
    )

    assert documented == {f"{each.method} {each.template}" for each in OPERATIONS}


@pytest.mark.parametrize(
    ("status", "category", "others"),
    # The router knows no route.
    [(404, Category.NOT_FOUND, {"not_found"}), (409, Category.CONFLICT, set())],
)
def test_every_such_refusal_is_in_the_manual(
    status: int, category: Category, others: set[str]
) -> None:
    [row] = (line for line in PAGE.splitlines() if line.startswith(f"| {status} "))

    # Those of `service/azure` and of the console are for ARM and for the console to answer.
    refusals = {
        code(kind)
        for kind in errors_of(RefusalError)
        if kind.category is category
        and kind.__module__.startswith(("forewarned.core.", "forewarned.service."))
        and not kind.__module__.startswith("forewarned.service.azure.")
    }
    assert set(re.findall(r"`(\w+)`", row)) == refusals | others


def test_every_metric_is_in_the_manual() -> None:
    text = Metrics().render(
        events={},
        tasks={},
        drains={},
        scopes=0,
        now=datetime(2026, 11, 17, tzinfo=UTC),
        lag=timedelta(0),
    )
    served = set(re.findall(r"^# TYPE forewarned_(\w+) ", text.decode(), re.MULTILINE))
    _, _, section = PAGE.partition("### Metrics\n")
    table = section.partition("\n## ")[0]

    # When each counter was made, which is the library's own.
    assert set(re.findall(r"^\| `(\w+)", table, re.MULTILINE)) == {
        name for name in served if not name.endswith("_created")
    }


def test_every_state_of_a_drain_is_in_the_manual() -> None:
    _, _, section = PAGE.partition("### Drains\n")
    table = section.partition("\n### ")[0]

    assert re.findall(r"^\| `([A-Z]\w+)` \|", table, re.MULTILINE) == [*DrainState]
