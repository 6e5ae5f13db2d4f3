"""What is built is built once for all of these tests."""

from pathlib import Path

import pytest

from tools.release.python_distributions import build_sdist, build_wheel


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dist")


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    return build_wheel(dist)


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    return build_sdist(dist)
