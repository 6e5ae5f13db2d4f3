"""The pytest plugin: the fixture `scheduled_events`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forewarned.testing import ScheduledEventsService


@pytest.fixture
def scheduled_events() -> "Iterator[ScheduledEventsService]":
    """Scheduled events in this process, on a free port of loopback, with a clock that you advance.

    vm = scheduled_events.vm("web_0")       # its endpoint is vm.endpoint
    event = vm.schedule("Reboot")           # your handler reads it there
    event.wait_approved()                   # fails if the handler does not approve it
    scheduled_events.advance("15m")         # moves the clock; what falls due happens
    scheduled_events.faults.add(status=500, times=2)
    """
    # Not before a test needs it: every run of pytest imports this module.
    try:
        from forewarned.testing import serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
    with serve() as service:
        yield service
