"""What a store keeps of subscriptions and of messages on their way.

A message is written by the transaction of its transition: to the outbox or, where it is known which
subscriptions it is for, with their names. The publisher queues a delivery for each. Of one
subscription's deliveries that have one scope only the first may be claimed: the others wait until
it was delivered or given up.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from forewarned.service.subscriptions.model import (
    Delivery,
    DeliveryFilter,
    DeliveryKey,
    Forgotten,
    Health,
    Message,
    Rest,
    Subscription,
    TakenOut,
)
from forewarned.service.subscriptions.outcomes import Outcome


class SubscriptionListings(Protocol):
    """Questions, for every snapshot."""

    def subscription(self, name: str) -> Subscription | None: ...
    def subscriptions(self) -> list[Subscription]:
        """In order of name."""

    def subscription_health(self, *, now: datetime) -> Mapping[str, Health]:
        """Of each subscription. `now` is real time."""

    def deliveries(self, wanted: DeliveryFilter) -> list[Delivery]:
        """The oldest first."""


class PublishingTransaction(Protocol):
    """What a transaction changes of subscriptions and deliveries."""

    @property
    def real_now(self) -> datetime:
        """Real time, by the store's clock where several nodes share it."""

    def lock_publishing(self) -> None:
        """Until the transaction ends no other one changes subscriptions or deliveries.

        To be called first by each function that does, and before all that is decided from them.
        """

    def put_subscription(self, subscription: Subscription) -> None:
        """Add it, or replace the one of its name. Transitions are published from now on.

        What was resting is tried at once: its target may be another one now.
        """

    def remove_subscription(self, name: str) -> None:
        """With all of its deliveries."""

    def requeue(self, name: str) -> None:
        """Let its pending deliveries have waited since now only, and none have been tried."""

    def redeliver(self, name: str, numbers: Collection[int] = ()) -> int:
        """Make undelivered messages pending again, these or all, and pending ones due at once.

        A rest is over. Returns how many messages there were.
        """

    # --- for the publisher -------------------------------------------------------------------

    def take_outbox(self, *, limit: int, takers: int = 1) -> TakenOut:
        """The next messages, of which so many deliveries are made, or of one message.

        Those that say which subscriptions they are for are queued by this. Others count for so
        many `takers`.
        """

    def place(self, messages: Sequence[Message]) -> list[Message]:
        """With where they come from in Azure's terms, if their VMs are still there."""

    def queue(self, message: Message, names: Collection[str]) -> None:
        """A delivery to each of these subscriptions."""

    def due_subscriptions(self) -> frozenset[str]:
        """The names of those that have deliveries to claim now."""

    def rests(self) -> Mapping[str, Rest]:
        """Of the subscriptions that have rested since their last delivery."""

    def subscriptions_under_way(self, names: Collection[str]) -> frozenset[str]:
        """Those of them that a node is delivering something to."""

    def claim_deliveries(
        self, wanted: Mapping[str, int], *, by: str, until: datetime
    ) -> list[Delivery]:
        """Of each of these subscriptions at most so many that are due, the longest due first.

        Until then, or until it has ended the claim, `by` alone may deliver them.
        """

    def renew_claims(self, keys: Collection[DeliveryKey], *, by: str, until: datetime) -> None:
        """Those that no other node has taken over."""

    def claimed(self, keys: Collection[DeliveryKey], *, by: str) -> list[Delivery]:
        """Those of them whose claims no other node has taken over."""

    def end_delivery(self, delivery: Delivery) -> None:
        """It has arrived: remove it, and let the next of its scope go."""

    def put_delivery(self, delivery: Delivery) -> None:
        """As it is now, and free to be claimed when it is due.

        If it is given up, the next of its scope goes. What has been waiting behind it has been
        waiting for the same target, so that its first attempt counts from when it was queued.
        """

    def release_deliveries(self, *, by: str) -> None:
        """Let others claim what `by` has claimed."""

    def note_health(
        self, name: str, *, delivered: int, failed: int, error: str, rest: Rest | None = None
    ) -> None:
        """What has become of so many attempts just now, and how it rests from now on."""

    def next_delivery_at(self, names: Collection[str]) -> datetime | None:
        """When one of these subscriptions' is due, or its claim over.

        Also a claim of the caller's own: if it did not hear that its claims were committed, it is
        not delivering them.
        """

    def give_up_waiting(self, name: str, *, before: datetime, error: str, limit: int) -> int:
        """Give up what was queued before, unless something was delivered since, the oldest first.

        At most so many, and nothing that is under way. Returns how many there were.
        """

    def forget_deliveries(
        self, *, given_up_before: datetime, queued_before: datetime, limit: int
    ) -> Mapping[str, Forgotten]:
        """Remove what is undelivered or pending for so long, at most so many, the oldest first.

        Returns how many there were, by subscription.
        """


class Messenger(Protocol):
    """Delivers messages to the targets of subscriptions."""

    async def deliver(self, message: Message, subscription: Subscription) -> Outcome: ...
