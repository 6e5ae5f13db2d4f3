"""What the machine has found, each as small as it can be."""

from collections.abc import Iterator

import pytest

from forewarned.core.ids import EventId, HostName, ResourceName
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.core.rules import Rules
from forewarned.service.events.schedule import EventOrder, WorkOrder
from forewarned.service.listings import HistoryFilter
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
    observer.expect(observer.stack.use_cases.fleet.apply(plan(), by=OPERATOR))
    for name in VMS:
        observer.poll(name, NEWEST)
    yield observer
    observer.close()


def test_pruning_does_not_undo_the_start_it_was_the_last_thing_to_wait_for(
    observer: Observer,
) -> None:
    """I16, I18, I29. `solo` alone had not approved the maintenance of its host, and then it went."""
    app = observer.stack.use_cases
    work = WorkOrder(type=EventType.REBOOT)
    observer.expect(app.scheduler.maintain_host(HostName("rack-1"), work, by=OPERATOR))
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


def test_the_end_of_a_vm_is_the_end_of_the_work_that_waited_for_it_alone(
    observer: Observer,
) -> None:
    """I16, I19: `solo` is deleted while it alone holds the maintenance of its host back."""
    app = observer.stack.use_cases
    solo = (ResourceName("solo"),)
    work = WorkOrder(type=EventType.REBOOT)
    observer.expect(app.scheduler.maintain_host(HostName("rack-1"), work, by=OPERATOR))
    parts = list(observer.oracle.waiting())
    for part in parts:
        if part.scope_id != SOLO:
            observer.approve(observer.oracle.vms(part.scope_id)[0], [part.event.id])
    terminate = EventOrder(type=EventType.TERMINATE, resources=solo, source=EventSource.USER)
    observer.expect(app.scheduler.schedule(terminate, by=OPERATOR))
    [deleting] = [life.event.id for life in observer.oracle.waiting() if life not in parts]
    observer.approve("solo", [deleting])

    observer.expect(app.actuation.complete_by_hand(deleting, by=OPERATOR))

    observer.check_state()
    assert {part.scope_id: part.status for part in parts} == {
        part.scope_id: EventStatus.CANCELED if part.scope_id == SOLO else EventStatus.STARTED
        for part in parts
    }


def test_a_vm_made_anew_reads_nothing_of_what_had_started_for_the_one_before_it(
    observer: Observer,
) -> None:
    """I19, F18."""
    app = observer.stack.use_cases
    observer.expect(app.scheduler.fail_host(HostName("rack-1"), by=OPERATOR))
    [failed] = [life for life in observer.oracle.under_way() if life.scope_id == SOLO]

    observer.expect(app.fleet.apply(plan({**FULL, SOLO: 0}), by=OPERATOR, prune=True))
    is_over = failed.is_over
    observer.expect(app.fleet.apply(plan(), by=OPERATOR))
    observer.poll("solo", NEWEST)

    observer.check_state()
    assert is_over
    assert observer.oracle.shown_in(SOLO) == []
    rows = observer.run(observer.stack.store.read(lambda s: s.history(_of(failed.event.id))))
    assert (rows[0].action, rows[0].actor, rows[0].cause) == (
        "completed",
        OPERATOR.name,
        "VM solo is gone",
    )


def _of(event_id: EventId) -> HistoryFilter:
    return HistoryFilter(event_id=event_id)
