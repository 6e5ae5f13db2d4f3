"""Where the publisher and the targets meet."""

from typing import Protocol

from forewarned.service.subscriptions.model import Message, Subscription
from forewarned.service.subscriptions.outcomes import Outcome


class Target(Protocol):
    """What delivers the messages of one subscription.

    Invariant: an answer, no answer and any failure of the network are outcomes. What is raised is
    a defect, and taken for `Later`. An attempt ends by itself: the publisher gives it up after
    `publisher.LONGEST_ATTEMPT` only because otherwise another node would try the same message.
    """

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome: ...


class MakeTarget(Protocol):
    """Makes the target of a subscription, once for as long as the subscription stays the same."""

    def __call__(self, subscription: Subscription, /) -> Target: ...
