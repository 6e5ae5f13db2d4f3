"""Fixtures of the hooks' tests."""

from typing import Any

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """The loop that an agent has in production: the base install has no other."""
    return "asyncio", {"use_uvloop": False}
