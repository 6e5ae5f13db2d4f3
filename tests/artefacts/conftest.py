"""What is built is built once for all of these tests."""

from pathlib import Path

import pytest

from tests.artefacts.debian_base import make_base
from tools.release.python_distributions import build_sdist, build_wheel
from tools.release.pyz import build_pyz


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dist")


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    return build_wheel(dist)


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    return build_sdist(dist)


@pytest.fixture(scope="session")
def pyz(dist: Path) -> Path:
    return build_pyz(dist)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Debian, as a tar."""
    return make_base(tmp_path_factory.mktemp("base"))
