"""A server in one process, on the store of one whose clock was moved."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.clock import wall_clock
from forewarned.runtime import single_process
from forewarned.runtime.listeners.sockets import StartError
from forewarned.runtime.settings import Resolved, load
from tests.builders import MINUTE

ANYWHERE = "127.0.0.1:0"


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A server that starts takes the whole process's log over."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def with_clock(clock: str, folder: Path) -> Resolved:
    doors = {"metadata": ANYWHERE, "control": ANYWHERE, "arm": "off"}
    flags = {**doors, "data": folder, "clock": clock, "workers": "0"}
    return load(flags=flags, environ={})


async def moved_ahead(folder: Path, by: timedelta) -> None:
    async with single_process.running(with_clock("paused", folder)) as server:
        clock = server.application.clock
        lead = clock.now() - wall_clock()
        await server.application.use_cases.clock_control.step(by - lead)


async def test_real_time_does_not_begin_on_a_store_that_is_far_ahead_of_it(tmp_path: Path) -> None:
    """I20: until the machine's clock had caught up nothing would start, for as long as that takes."""
    await moved_ahead(tmp_path, 6 * MINUTE)

    with pytest.raises(StartError, match=r"was last used at .*, which is in the future"):
        async with single_process.running(with_clock("real", tmp_path)):
            pass


async def test_real_time_goes_on_from_a_store_that_is_a_little_ahead_of_it(tmp_path: Path) -> None:
    """I7: a machine's clock may be set back by some minutes; the server's never goes back."""
    await moved_ahead(tmp_path, 4 * MINUTE)

    async with single_process.running(with_clock("real", tmp_path)) as server:
        lead = server.application.clock.now() - wall_clock()

    assert 3 * MINUTE < lead < 5 * MINUTE


async def test_a_clock_that_people_move_may_be_as_far_ahead_as_they_like(tmp_path: Path) -> None:
    await moved_ahead(tmp_path, 400 * MINUTE)

    async with single_process.running(with_clock("1x", tmp_path)) as server:
        lead = server.application.clock.now() - wall_clock()

    assert lead > 399 * MINUTE
