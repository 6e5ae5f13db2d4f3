"""What the machine has found, each as small as it can be."""

from collections.abc import Iterator

import pytest

from notbefore.core.ids import HostName
from notbefore.core.model import EventStatus, EventType
from notbefore.core.rules import Rules
from notbefore.service.scheduling import WorkRequest
from tests.builders import NOON, OPERATOR
from tests.stateful.documents import NEWEST
from tests.stateful.fleet import FULL, SOLO, VMS, plan
from tests.stateful.observer import Observer
from tests.stateful.stack import MemoryStack, SqliteStack, Stack


@pytest.fixture(params=[MemoryStack, SqliteStack])
def observer(request: pytest.FixtureRequest) -> Iterator[Observer]:
    """A fleet that is read everywhere, and nothing carries events out by itself."""
    stack_type: type[Stack] = request.param
    observer = Observer(stack_type, start=NOON, rules=Rules(), is_simulated=False)
    observer.expect(observer.stack.application.fleet.apply(plan(), by=OPERATOR))
    for name in VMS:
        observer.poll(name, NEWEST)
    yield observer
    observer.close()


def test_pruning_does_not_undo_the_start_it_was_the_last_thing_to_wait_for(
    observer: Observer,
) -> None:
    """I16, I18, I29. `solo` alone had not approved the maintenance of its host, and then it went."""
    app = observer.stack.application
    work = WorkRequest(type=EventType.REBOOT)
    observer.expect(app.scheduling.maintain_host(HostName("rack-1"), work, by=OPERATOR))
    parts = list(observer.oracle.waiting())
    for part in parts:
        if part.scope_id != SOLO:
            observer.approve(observer.oracle.vms(part.scope_id)[0], [part.event.id])

    observer.expect(app.fleet.apply(plan({**FULL, SOLO: 0}), by=OPERATOR, prune=True))

    observer.check_state()
    assert {part.scope_id: part.status for part in parts} == {
        part.scope_id: EventStatus.CANCELED if part.scope_id == SOLO else EventStatus.STARTED
        for part in parts
    }
