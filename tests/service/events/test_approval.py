import pytest

from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.service.records import Caller
from tests.control.control_api import FLEET, control_api


async def test_a_vm_that_was_removed_on_the_way_approves_nothing(anyio_backend: object) -> None:
    """S11, F18: who is in a scope is asked in the transaction that approves."""
    async with control_api() as control:
        await control.switch_on("db-0")
        event = await control.schedule("Reboot", "db-1")
        caller = Caller(name=ResourceName("db-0"), scope_id=ScopeId("avset/db"))
        without = [{"name": "db", "vms": ["db-1", "db-2"], "update_domains": 2}]
        await control.put_fleet({**FLEET, "availability_sets": without}, prune="true")

        with pytest.raises(UnknownResourceError):
            await control.services.use_cases.approvals.approve(
                [EventId(event["event_id"])], caller=caller, address="10.1.0.1"
            )

        waiting = await control.get(f"/v1/events/{event['event_id']}")
        assert (waiting["status"], waiting["approval"]) == ("Scheduled", None)
