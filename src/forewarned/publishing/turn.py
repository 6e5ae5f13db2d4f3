"""One turn of the publisher: a transaction that records what came of attempts, and begins others.

Nodes take turns, one at a time. Invariants: what has left the outbox is queued for every
subscription that it is for, in the same transaction; and what became of an attempt counts only
while its claim is held, because otherwise another node makes the same attempt. While a subscription
rests, no node begins an attempt for it; afterwards all nodes together make one at a time, until one
has succeeded.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from forewarned.core.copying import replace
from forewarned.core.model import Actor
from forewarned.publishing import retries
from forewarned.service.ports import Transaction
from forewarned.service.subscriptions.model import (
    Delivery,
    DeliveryKey,
    DeliveryState,
    Forgotten,
    Message,
    Rest,
    Subscription,
    SubscriptionState,
)
from forewarned.service.subscriptions.outcomes import Gone, Outcome
from forewarned.service.subscriptions.targets import TargetSpec

CLAIM: Final = timedelta(seconds=10)
"""How long a claim holds without being renewed: so soon are those of a killed node taken over."""
MOST: Final = 16
"""Attempts at a time."""
_MOST_EACH: Final = 8
"""Of one subscription: a target that answers slowly must not keep the others waiting."""
_MOST_FAILING: Final = 1
"""Of one whose last attempt failed: its target may take its whole time limit to say nothing."""
_MOST_QUEUED: Final = 2048
"""Deliveries that are made in one turn: changes wait for it on SQLite, a few milliseconds."""
MOST_REMOVED: Final = 1024
"""Deliveries that are removed, or given up untried, in one turn because they are too old."""
_AT_ONCE: Final = timedelta(0)
_PUBLISHER: Final = Actor(name="publisher")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    key: DeliveryKey
    target: TargetSpec
    outcome: Outcome
    jitter: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What this publisher has under way when a turn begins."""

    by: str
    """The node."""
    attempted: Sequence[Attempted] = ()
    under_way: Collection[DeliveryKey] = ()
    failing: Collection[str] = ()
    """Subscriptions whose last attempt failed."""
    resumes: bool = False
    """Whether the node has just started: what it had claimed before is free again."""
    first: int = 0
    """Which subscription is looked at first, if there are more than there is room for."""
    forget_after: timedelta | None = None
    """How long messages are kept that are not delivered; None to leave that for another turn."""


class Settled(NamedTuple):
    """What came of attempts, as far as a turn tells of it."""

    given_up: Sequence[Delivery] = ()
    """At an attempt."""
    given_up_waiting: Mapping[str, int] = {}
    """How many were given up because their target is dead, by subscription."""
    paused: Mapping[str, str] = {}
    """Subscriptions whose target is gone, and what it said."""


class Turn(NamedTuple):
    claimed: Sequence[tuple[Delivery, Subscription]]
    settled: Settled
    again: timedelta | None
    """When there is something to do; None if that is not known."""
    is_on: bool
    """Whether there is a subscription."""
    forgotten: Mapping[str, Forgotten]
    """What was removed because it was too old, by subscription."""
    leaves_old: bool
    """Whether there may be more of that."""


def take_turn(tx: Transaction, standing: Standing) -> Turn:
    tx.lock_publishing()
    if standing.resumes:
        tx.release_deliveries(by=standing.by)
    settled = _settle(tx, standing)
    if standing.under_way:
        tx.renew_claims(standing.under_way, by=standing.by, until=tx.real_now + CLAIM)
    subscriptions = {each.name: each for each in tx.subscriptions()}
    is_emptied = _fan_out(tx, subscriptions)
    forgotten = {} if standing.forget_after is None else _forget(tx, standing.forget_after)
    leaves_old = sum(map(sum, forgotten.values())) >= MOST_REMOVED
    active = [name for name, each in subscriptions.items() if _is_active(each)]
    rests = tx.rests()
    resting = {name for name, rest in rests.items() if rest.holds(tx.real_now)}
    due = tx.due_subscriptions() - resting
    probed = _probed_elsewhere(tx, due & rests.keys(), standing)
    # Only those share the slots: with many subscriptions there is not one for each.
    due -= probed
    wanted = _wanted([name for name in active if name in due], standing, probing=rests)
    claimed = tx.claim_deliveries(wanted, by=standing.by, until=tx.real_now + CLAIM)
    # Those for which there was no room begin when an attempt has ended.
    got = Counter(each.subscription for each in claimed)
    waiting = resting | probed
    idle = [
        name
        for name in active
        if name not in waiting and (name not in due or got[name] < wanted.get(name, 0))
    ]
    instants = [rests[name].until for name in active if name in resting]
    if probed:
        # The node may have been killed: then its claims are over.
        instants.append(tx.real_now + CLAIM)
    return Turn(
        claimed=[(each, subscriptions[each.subscription]) for each in claimed],
        settled=settled,
        again=_again(tx, idle, instants) if is_emptied and not leaves_old else _AT_ONCE,
        is_on=bool(subscriptions),
        forgotten=forgotten,
        leaves_old=leaves_old,
    )


def take_leave(tx: Transaction, standing: Standing) -> Settled:
    """The last turn: others may claim what was not finished."""
    tx.lock_publishing()
    settled = _settle(tx, standing)
    tx.release_deliveries(by=standing.by)
    return settled


def _is_active(subscription: Subscription) -> bool:
    return subscription.state is SubscriptionState.ACTIVE


def _settle(tx: Transaction, standing: Standing) -> Settled:
    if not standing.attempted:
        return Settled()
    keys = {each.key for each in standing.attempted}
    held = {each.key: each for each in tx.claimed(keys, by=standing.by)}
    given_up, delivered, failed = [], Counter[str](), Counter[str]()
    errors: dict[str, str] = {}
    outcomes: dict[str, list[Attempted]] = {}
    for each in standing.attempted:
        delivery = held.get(each.key)
        if delivery is None:
            continue
        outcomes.setdefault(delivery.subscription, []).append(each)
        left = retries.after(delivery, each.outcome, jitter=each.jitter, now=tx.real_now)
        if left is None:
            tx.end_delivery(delivery)
            delivered[delivery.subscription] += 1
            continue
        tx.put_delivery(left)
        failed[delivery.subscription] += 1
        errors[delivery.subscription] = left.last_error
        if left.state is DeliveryState.UNDELIVERED:
            given_up.append(left)
    rests = tx.rests()
    waiting: dict[str, int] = {}
    paused: dict[str, str] = {}
    for name, attempted in sorted(outcomes.items()):
        became = [each.outcome for each in attempted]
        rest = retries.rest_after(
            rests.get(name), became, jitter=attempted[0].jitter, now=tx.real_now
        )
        tx.note_health(
            name,
            delivered=delivered[name],
            failed=failed[name],
            error=errors.get(name, ""),
            rest=rest,
        )
        if retries.is_dead(rest, became):
            waiting[name] = tx.give_up_waiting(
                name,
                before=tx.real_now - retries.GIVE_UP_AFTER,
                error=errors[name],
                limit=MOST_REMOVED,
            )
        why = _pause_if_gone(tx, name, attempted)
        if why:
            paused[name] = why
    return Settled(given_up, waiting, paused)


def _pause_if_gone(tx: Transaction, name: str, attempted: Collection[Attempted]) -> str:
    """A target that is gone is left alone until an operator resumes the subscription.

    Returns what it said; nothing if it is not gone.
    """
    gone = {each.target: each.outcome for each in attempted if isinstance(each.outcome, Gone)}
    subscription = tx.subscription(name) if gone else None
    # An operator may have given it another target, or paused it, while the attempt was under way.
    if subscription is None or not _is_active(subscription) or subscription.target not in gone:
        return ""
    tx.put_subscription(replace(subscription, state=SubscriptionState.PAUSED))
    why = gone[subscription.target].reason
    tx.record("subscription_paused", by=_PUBLISHER, cause=f"{name}: {why}")
    return why


def _fan_out(tx: Transaction, subscriptions: Mapping[str, Subscription]) -> bool:
    """Returns whether all messages are queued now."""
    taken = tx.take_outbox(limit=_MOST_QUEUED, takers=max(len(subscriptions), 1))
    wanted = [
        (message, names)
        for message in taken.unaddressed
        if (names := _takers(message, subscriptions.values()))
    ]
    if wanted:
        placed = tx.place([message for message, _ in wanted])
        for message, (_, names) in zip(placed, wanted, strict=True):
            tx.queue(message, names)
    return not taken.leaves_more


def _forget(tx: Transaction, after: timedelta) -> Mapping[str, Forgotten]:
    before = tx.real_now - after
    # Also what is never tried: of a subscription that stays paused, or that is dead and has so
    # many messages that there is no time to try each.
    return tx.forget_deliveries(
        given_up_before=before,
        queued_before=before - retries.GIVE_UP_AFTER,
        limit=MOST_REMOVED,
    )


def _takers(message: Message, subscriptions: Collection[Subscription]) -> list[str]:
    return [each.name for each in subscriptions if each.wants(message)]


def _probed_elsewhere(
    tx: Transaction, failing: Collection[str], standing: Standing
) -> frozenset[str]:
    """Those of them that another node is trying already."""
    own = {key.subscription for key in standing.under_way}
    others = [name for name in failing if name not in own]
    return tx.subscriptions_under_way(others) if others else frozenset()


def _wanted(
    due: Sequence[str], standing: Standing, *, probing: Mapping[str, Rest]
) -> dict[str, int]:
    """How many deliveries of each of these subscriptions may be begun now."""
    room = MOST - len(standing.under_way)
    busy = Counter(key.subscription for key in standing.under_way)
    # In another order each time, so that none is always the last.
    place = standing.first % len(due) if due else 0
    wanted: dict[str, int] = {}
    names = [*due[place:], *due[:place]]
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        is_failing = name in standing.failing or name in probing
        most = _MOST_FAILING if is_failing else _MOST_EACH
        share = min(max(-(-room // left), 1), most - busy[name], room)
        if share > 0:
            wanted[name] = share
            room -= share
    return wanted


def _again(
    tx: Transaction, names: Collection[str], instants: Sequence[datetime]
) -> timedelta | None:
    """When one of these subscriptions has something to do, or one of these instants has come."""
    instant = tx.next_delivery_at(names) if names else None
    first = min([*instants, *([] if instant is None else [instant])], default=None)
    return None if first is None else max(first - tx.real_now, _AT_ONCE)
