"""What is left running on every VM must cost next to nothing while nothing happens."""

import sys

import pytest

from tools.agent_idle import polling, waiting

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="read from Linux's /proc"),
    pytest.mark.thorough,  # they measure for as long as a person would look
]

CORE = 0.005
MEMORY = 60_000_000


def test_a_poll_a_second_costs_less_than_half_a_percent_of_a_core() -> None:
    cost = polling(10)

    assert cost.core < CORE
    assert cost.memory < MEMORY
    assert cost.polls == pytest.approx(1, abs=0.2)


def test_waiting_for_news_costs_next_to_nothing() -> None:
    cost = waiting(5)

    assert cost.core < CORE / 5
    assert cost.memory < MEMORY
