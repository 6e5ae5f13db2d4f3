"""A lost race is run again: what the publisher claims and records is as if none had been lost."""

from collections.abc import Callable

from forewarned.service.ports import Store
from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome, Refused
from tests.builders import HOUR
from tests.publishing.stage import a_stage
from tests.racing import callers_in, outcome_of_lost_races
from tests.service.subscriptions.messages import a_subscription

OPS, CHAT = a_subscription("ops"), a_subscription("chat")


async def test_turns_that_are_run_twice_deliver_as_if_run_once() -> None:
    async def outcome(over: Callable[[Store], Store]) -> list[object]:
        answers: list[Outcome | None] = [
            Delivered(),
            Later(reason="503 Service Unavailable"),
            Delivered(),
            Refused(reason="404 Not Found"),
            None,
        ]

        def script(_: Message, subscription: Subscription) -> Outcome | None:
            return Delivered() if subscription.name == "chat" else answers.pop(0)

        async with a_stage(over) as stage:
            await stage.subscribe(OPS, CHAT)
            stage.targets.script = script
            async with stage.publisher():
                await stage.happen()
                await stage.settled(delivered=1)
                await stage.happen()
                await stage.settled(delivered=1, failed=1)
                await stage.pass_time(HOUR)
                await stage.settled(delivered=2, failed=1)
                await stage.happen()
                await stage.settled(delivered=2, failed=2)
                await stage.happen()
                await stage.settled("chat", delivered=4)
                # One is under way when the publisher stops, and is left to others.
                await stage.targets.wait_for(9)
            seen = [(each.cause, each.subscription) for each in stage.targets.attempts]
            health = [await stage.health(name) for name in ("ops", "chat")]
            return [sorted(seen), health, await stage.deliveries()]

    (_, __, left), callers = await outcome_of_lost_races(outcome)

    assert left != []
    assert callers >= callers_in("publishing")
