"""Which nodes keep up."""

from datetime import timedelta

import pytest

from forewarned.service.nodes import is_fresh
from forewarned.service.records import SeenNode
from tests.builders import NOON, a_node_record


@pytest.mark.parametrize(
    ("silence", "lag", "fresh"),
    [(3.0, 0.0, True), (3.1, 0.0, False), (0.0, 1.0, True), (0.0, 1.1, False)],
)
def test_a_node_is_stale_once_it_is_silent_or_behind(
    silence: float, lag: float, fresh: bool
) -> None:
    seen = SeenNode(a_node_record(), NOON, timedelta(seconds=lag))

    assert is_fresh(seen, now=NOON + timedelta(seconds=silence)) is fresh
