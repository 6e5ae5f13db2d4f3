"""Three nodes take both cores of a small machine, so these tests run one after another."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
QUICK = {"test_checkers.py"}


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in this very hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and item.path.name not in QUICK:
            item.add_marker(pytest.mark.xdist_group("cluster"))
