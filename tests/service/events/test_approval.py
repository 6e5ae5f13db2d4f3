import pytest

from forewarned.actuators.simulated import SimulatedActuator, Timing
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import EventType
from forewarned.core.transitions import Approved, Interrupted, Started
from forewarned.service.events.schedule import EventOrder, usual_source
from forewarned.service.listings import HistoryFilter
from forewarned.service.records import Caller, Commit
from tests.builders import MINUTE, OPERATOR, SECOND
from tests.control.control_api import FLEET, control_api
from tests.service.estate import TEN, Estate, estate


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


async def a_reboot(shop: Estate, *, lasts: int | None = None) -> EventId:
    """Announced to vm1, which is made."""
    await shop.put_machine("vm1")
    await shop.switch_on("vm1")
    order = EventOrder(
        type=EventType.REBOOT,
        resources=(ResourceName("vm1"),),
        source=usual_source(EventType.REBOOT),
        duration=None if lasts is None else lasts * SECOND,
    )
    [record] = await shop.use_cases.scheduler.schedule(order, by=OPERATOR)
    return record.event.id


async def history(shop: Estate, event_id: EventId) -> list[tuple[str, str]]:
    rows = await shop.ask(lambda snapshot: snapshot.history(HistoryFilter(event_id=event_id)))
    return [(row.action, row.actor) for row in reversed(rows)]


async def test_what_is_simulated_begins_in_the_transaction_of_the_approval(
    anyio_backend: object,
) -> None:
    """I22, I29: in one commit, with a row for each change, by whoever it was."""
    async with estate() as shop:
        event_id = await a_reboot(shop)
        commits: list[Commit] = []
        shop.use_cases.engine.tell(commits.append)

        await shop.approve(event_id)

        [commit] = commits
        assert [type(fact) for fact in commit.transitions] == [Approved, Started, Interrupted]
        assert (await history(shop, event_id))[1:] == [
            ("approved", OPERATOR.name),
            ("started", OPERATOR.name),
            ("interrupted", "actuator"),
        ]


async def test_what_began_with_an_approval_goes_on_and_does_not_begin_again(
    anyio_backend: object,
) -> None:
    """I22: neither by itself nor when a server that has restarted takes it up."""
    async with estate() as shop:
        event_id = await a_reboot(shop)
        await shop.approve(event_id)
        actuation = shop.use_cases.actuation
        timings = {EventType.REBOOT: Timing(impact=MINUTE, span=TEN)}

        await actuation.resume(SimulatedActuator(shop.clock, actuation, timings))
        await shop.step(TEN)

        words = [action for action, _ in await history(shop, event_id)]
        assert words == [
            *("scheduled", "approved", "started", "interrupted", "restored", "completed")
        ]


async def test_an_event_without_an_impact_interrupts_nothing_when_it_is_approved(
    anyio_backend: object,
) -> None:
    async with estate() as shop:
        event_id = await a_reboot(shop, lasts=0)

        await shop.approve(event_id)

        words = [action for action, _ in await history(shop, event_id)]
        assert words == ["scheduled", "approved", "started"]
