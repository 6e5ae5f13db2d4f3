from collections.abc import Iterator

import pytest

from tests.cli.served import Served, serving


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as running:
        yield running
