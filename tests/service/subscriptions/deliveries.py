"""Deliveries on their way or given up, as a publisher leaves them, for tests of what shows them."""

from dataclasses import replace
from datetime import timedelta

from forewarned.service.engine import Engine
from forewarned.service.ports import Transaction
from forewarned.service.subscriptions.model import (
    DeliveryFilter,
    DeliveryState,
    PublishedStatus,
    Rest,
)
from tests.builders import an_event
from tests.service.subscriptions.messages import a_message


async def queue_message(
    engine: Engine,
    name: str,
    status: PublishedStatus = PublishedStatus.STARTED,
    *,
    state: DeliveryState = DeliveryState.PENDING,
    error: str = "",
    vm: str = "web",
    rests_for: timedelta | None = None,
) -> int:
    """Its number. With an error, an attempt has failed."""

    def decision(tx: Transaction) -> int:
        known = tx.deliveries(DeliveryFilter(limit=1000))
        number = 1 + max((each.message.number for each in known), default=0)
        # Of a scope of its own, so that it does not wait for others.
        message = a_message(
            status, number=number, scope_id=f"vm/{number}", event=an_event(resources=(vm,))
        )
        tx.queue(message, [name])
        if error:
            [delivery] = tx.deliveries(DeliveryFilter(subscription=name, after=number - 1))
            is_over = state is DeliveryState.UNDELIVERED
            tx.put_delivery(
                replace(
                    delivery,
                    state=state,
                    attempts=3,
                    tried_at=tx.real_now,
                    due_at=None if is_over else tx.real_now,
                    given_up_at=tx.real_now if is_over else None,
                    last_error=error,
                )
            )
            rest = None if rests_for is None else Rest(1, tx.real_now + rests_for)
            tx.note_health(name, delivered=0, failed=3, error=error, rest=rest)
        return number

    return await engine.decide(decision)
