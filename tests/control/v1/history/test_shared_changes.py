"""Changes of a store that several nodes share, on their way to those who watch at one."""

from forewarned.control.v1.changes import Changes
from forewarned.control.v1.shared_changes import SharedChanges
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import EventType
from forewarned.service.listings import HistoryRow
from tests.builders import NOON
from tests.control.control_api import ControlApi


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
