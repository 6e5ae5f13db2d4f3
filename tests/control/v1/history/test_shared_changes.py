"""Changes of a store that several nodes share, on their way to those who watch at one."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from typing_extensions import override

from forewarned.clock import VirtualClock
from forewarned.control.v1.changes import Changes
from forewarned.control.v1.shared_changes import SharedChanges
from forewarned.core import lifecycle
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import EventType
from forewarned.core.rules import Rules
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.assignment import simulated
from forewarned.service.listings import HistoryRow
from forewarned.service.ports import Snapshot
from forewarned.storage import SqliteStore
from tests.builders import NOON
from tests.control.control_api import ControlApi

T = TypeVar("T")


class Failing(SqliteStore):
    """Something happens while it is read, and then it can't be read."""

    meanwhile: Callable[[], None]

    @override
    async def read(self, work: Callable[[Snapshot], T]) -> T:
        self.meanwhile()
        raise StoreUnavailableError("the disk is full")


def a_failing_store() -> Failing:
    next_wake = partial(lifecycle.next_wake, rules=Rules())
    clock = VirtualClock(NOON, speed=0)
    return Failing(None, clock, next_wake=next_wake, actuator_of=simulated)


def a_row(number: int) -> HistoryRow:
    return HistoryRow(
        id=number,
        at=NOON,
        actor="operator",
        address="",
        action="scheduled",
        scope_id=ScopeId("vm/web"),
        event_id=EventId("0000000A-0000-4000-8000-000000000000"),
        event_type=EventType.REBOOT,
        resources=(),
        cause="",
        position=f"store.{number}",
    )


async def test_who_comes_from_another_node_waits_for_what_is_being_told(
    control: ControlApi,
) -> None:
    """Otherwise it would be told again what it has heard there."""
    changes = Changes()
    changes.told = "store.1"
    shared = SharedChanges(changes, control.services.engine)
    with changes.watch():
        shared.hear_history([a_row(2)])
        shared.hear_history([a_row(3)])
        before = changes.told
        await changes.all_told()

    assert (before, changes.told) == ("store.1", "store.3")


async def test_what_a_watcher_misses_while_the_store_fails_it_is_told_from_history_later() -> None:
    changes = Changes()
    changes.told = "store.1"
    store = a_failing_store()
    shared = SharedChanges(changes, Engine(store))
    store.meanwhile = lambda: shared.hear_history([a_row(3)])
    with changes.watch() as watcher:
        shared.hear_history([a_row(2)])
        await changes.all_told()
        last = [piece async for piece in watcher.messages(changes.beat)]

    assert b"id: store.1\n" in last[0]
    assert changes.told == "store.3"


async def test_no_position_from_before_a_gap_is_told_after_it() -> None:
    """A watcher that came back with it would be told that changes may be lost."""
    changes = Changes()
    changes.told = "store.1"
    store = a_failing_store()
    shared = SharedChanges(changes, Engine(store))
    store.meanwhile = shared.hear_gap
    with changes.watch():
        shared.hear_history([a_row(2)])
        await changes.all_told()

    assert changes.told is None
