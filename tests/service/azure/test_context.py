"""Ids of what a use case makes."""

from forewarned.core.ids import EventId, parse_event_id
from forewarned.core.model import EventType
from forewarned.service.azure import scale_sets
from forewarned.service.azure.context import Ids
from forewarned.service.ports import Transaction
from tests.service.estate import WITH_NOTICE, estate, set_id


def test_each_purpose_has_its_own_id_and_another_seed_makes_others() -> None:
    ids = Ids("one")

    made = [
        ids.event(EventType.REBOOT, "web_0"),
        ids.event(EventType.REBOOT, "web_1"),
        ids.event(EventType.TERMINATE, "web_0"),
        Ids("two").event(EventType.REBOOT, "web_0"),
        ids.vm("web_0"),
        ids.operation("web_0", "restart"),
    ]

    assert len(set(made)) == len(made)
    assert parse_event_id(made[0]) == made[0]


async def test_a_transaction_function_that_is_run_again_makes_the_same_ids() -> None:
    async with estate() as here:
        await here.put_set(capacity=2, model=WITH_NOTICE)
        await here.switch_on("web_0")
        context = here.context

        def delete(tx: Transaction) -> tuple[EventId, ...]:
            outcome = scale_sets.delete_instances(
                tx, scale_sets.find(tx, set_id()), None, force=False, context=context
            )
            return outcome.event_ids

        rehearsal = here.use_cases.engine.rehearsal()
        first = await rehearsal.decide(delete)

        assert len(first) == 2
        assert await rehearsal.decide(delete) == first
        assert await here.decide(delete) == first
