"""Subscriptions and deliveries in a database.

Invariant: of the pending deliveries of one subscription and one scope at most one has `due_at`, or
is claimed. It is the first, unless an earlier one has become pending again since it was claimed.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from forewarned.service.subscriptions.model import (
    Delivery,
    DeliveryFilter,
    DeliveryKey,
    DeliveryState,
    Forgotten,
    Health,
    Message,
    Rest,
    Subscription,
    TakenOut,
)
from forewarned.storage.relational.database import BufferedDatabase, Parameter
from forewarned.storage.relational.publishing import outbox
from forewarned.storage.relational.publishing.rows import (
    from_subscription,
    to_delivery,
    to_health,
    to_rest,
    to_subscription,
)
from forewarned.storage.relational.queries import Queries
from forewarned.storage.rows import FoundRow, micros, to_instant

_ADD: Final = "INSERT INTO subscriptions (document, name) VALUES (?, ?)"
_REPLACE: Final = "UPDATE subscriptions SET document = ? WHERE name = ?"
_DELIVERIES: Final = """
    SELECT deliveries.*, content
    FROM deliveries JOIN messages ON messages.number = deliveries.number
"""
_CLAIMED: Final = """
    EXISTS (SELECT 1 FROM deliveries AS other
            WHERE other.subscription = deliveries.subscription
              AND other.scope_id = deliveries.scope_id
              AND other.state = 'pending' AND other.claimed_by IS NOT NULL)
"""
_DUE: Final = """
    (due_at <= ? OR due_at > ?) AND (claimed_by IS NULL OR claimed_until <= ? OR claimed_until > ?)
"""


class Subscriptions(Queries):
    """The questions."""

    def subscription(self, name: str) -> Subscription | None:
        row = self._one("SELECT name, document FROM subscriptions WHERE name = ?", name)
        return None if row is None else to_subscription(row)

    def subscriptions(self) -> list[Subscription]:
        found = self._all("SELECT name, document FROM subscriptions ORDER BY name")
        return list(map(to_subscription, found))

    def subscription_health(self, *, now: datetime) -> dict[str, Health]:
        # Also what is not queued yet.
        counted = self._all(
            f"""SELECT subscription, state, CAST(sum(number) AS bigint) AS number,
                       min(oldest) AS oldest
                FROM (SELECT subscription, state, count(*) AS number, min(queued_at) AS oldest
                      FROM deliveries GROUP BY subscription, state
                      UNION ALL
                      SELECT taker.value, 'pending', last_number - first_number + 1, written_at
                      FROM addressed CROSS JOIN {self._dialect.each_of("takers", "taker")}
                     ) AS parts
                GROUP BY subscription, state"""
        )
        counts = {(row["subscription"], row["state"]): row for row in counted}
        return {
            row["name"]: to_health(
                row,
                pending=counts.get((row["name"], str(DeliveryState.PENDING))),
                undelivered=counts.get((row["name"], str(DeliveryState.UNDELIVERED))),
                now=now,
            )
            for row in self._all("SELECT * FROM subscriptions ORDER BY name")
        }

    def deliveries(self, wanted: DeliveryFilter) -> list[Delivery]:
        values: dict[str, Parameter] = {"after": wanted.after, "limit": wanted.limit}
        narrowed = ["deliveries.number > :after"]
        if wanted.subscription is not None:
            narrowed.append("subscription = :subscription")
            values["subscription"] = wanted.subscription
        if wanted.state is not None:
            narrowed.append("state = :state")
            values["state"] = str(wanted.state)
        found = self._named(
            f"""{_DELIVERIES} WHERE {" AND ".join(narrowed)}
                ORDER BY deliveries.number, subscription LIMIT :limit""",
            **values,
        )
        return list(map(to_delivery, found))


class PublishingWrites(Subscriptions):
    """What a transaction does to them."""

    _writable: BufferedDatabase

    @property
    @abstractmethod
    def real_now(self) -> datetime: ...

    def lock_publishing(self) -> None:
        self._all(f"SELECT one_row FROM publishing {self._for_update}")

    def put_subscription(self, subscription: Subscription) -> None:
        is_new = self.subscription(subscription.name) is None
        values = from_subscription(subscription), subscription.name
        self._writable.write(_ADD if is_new else _REPLACE, values)
        self._end_rest(subscription.name)
        self._subscribed()
        self._tell_publisher()

    def remove_subscription(self, name: str) -> None:
        # What is for it must not wait for another one of its name.
        outbox.remove_taker(self._writable, name)
        found = self._all("SELECT number FROM deliveries WHERE subscription = ?", name)
        self._writable.write("DELETE FROM deliveries WHERE subscription = ?", (name,))
        self._forget_messages([row["number"] for row in found])
        self._writable.write("DELETE FROM subscriptions WHERE name = ?", (name,))
        self._subscribed()
        self._tell_publisher()

    def _tell_publisher(self) -> None:
        """It has something to do once this is committed."""

    def _subscribed(self) -> None:
        """One was added, changed or removed: which messages are wanted is to be asked anew."""

    def _end_rest(self, name: str) -> None:
        self._writable.write(
            # What failed before says nothing of what an operator has changed.
            "UPDATE subscriptions SET rests = 1, rests_until = ? WHERE name = ? AND rests > 0",
            (micros(self.real_now), name),
        )

    def requeue(self, name: str) -> None:
        self._writable.write(
            """UPDATE deliveries SET queued_at = ?, tried_at = NULL
               WHERE subscription = ? AND state = 'pending'""",
            (micros(self.real_now), name),
        )

    def redeliver(self, name: str, numbers: Collection[int] = ()) -> int:
        chosen = f"AND {self._dialect.among('number', ':numbers')}" if numbers else ""
        values: dict[str, Parameter] = {"name": name, "now": micros(self.real_now)}
        if numbers:
            values["numbers"] = self._dialect.several(numbers)
        [[found]] = self._named(
            f"""SELECT count(*) FROM deliveries
                WHERE subscription = :name AND claimed_by IS NULL {chosen}
                  AND (state = 'undelivered' OR due_at > :now OR due_at IS NOT NULL
                       AND EXISTS (SELECT 1 FROM subscriptions
                                   WHERE name = :name AND rests > 0 AND rests_until > :now))""",
            **values,
        )
        self._end_rest(name)
        self._writable.write(
            f"""UPDATE deliveries SET due_at = :now
                WHERE subscription = :name AND due_at > :now AND claimed_by IS NULL {chosen}""",
            values,
        )
        self._writable.write(
            f"""UPDATE deliveries
                SET state = 'pending', attempts = 0, tried_at = NULL, given_up_at = NULL,
                    queued_at = :now
                WHERE subscription = :name AND state = 'undelivered' {chosen}""",
            values,
        )
        self._appoint("subscription = :name", {"name": name})
        self._tell_publisher()
        return int(found)

    # --- for the publisher -----------------------------------------------------------------------

    def take_outbox(self, *, limit: int, takers: int = 1) -> TakenOut:
        return outbox.take(
            self._writable,
            limit=limit,
            takers=takers,
            now=micros(self.real_now),
            for_update=self._for_update,
        )

    def place(self, messages: Sequence[Message]) -> list[Message]:
        names = outbox.unplaced(messages)
        places = outbox.places_of(self._database, names)
        return [outbox.placed(message, places) for message in messages]

    def queue(self, message: Message, names: Collection[str]) -> None:
        if not names:
            return
        self._writable.write(
            outbox.QUEUE_MESSAGE, (message.number, message.scope_id, outbox.content_of(message))
        )
        now = micros(self.real_now)
        for name in names:
            self._writable.write(
                outbox.QUEUE_DELIVERY,
                {
                    "number": message.number,
                    "name": name,
                    "scope_id": message.scope_id,
                    "now": now,
                },
            )

    def due_subscriptions(self) -> frozenset[str]:
        found = self._all(
            f"""SELECT name FROM subscriptions WHERE EXISTS
                    (SELECT 1 FROM deliveries WHERE subscription = name AND {_DUE})""",
            *self._due_now(),
        )
        return frozenset(row["name"] for row in found)

    def rests(self) -> dict[str, Rest]:
        found = self._all("SELECT name, rests, rests_until FROM subscriptions WHERE rests > 0")
        return {row["name"]: to_rest(row) for row in found}

    def subscriptions_under_way(self, names: Collection[str]) -> frozenset[str]:
        found = self._all(
            f"""SELECT DISTINCT subscription FROM deliveries
                WHERE due_at IS NOT NULL AND {self._dialect.among("subscription", "?")}
                  AND claimed_until > ? AND claimed_until <= ?""",
            self._dialect.several(names),
            *self._due_now()[:2],
        )
        return frozenset(row["subscription"] for row in found)

    def _due_now(self) -> tuple[Parameter, ...]:
        """The values of `_DUE`."""
        now = micros(self.real_now)
        # A clock that was put back must not keep anything waiting for longer than it would have.
        far = micros(self.real_now + timedelta(hours=2))
        return now, far, now, far

    def claim_deliveries(
        self, wanted: Mapping[str, int], *, by: str, until: datetime
    ) -> list[Delivery]:
        if not wanted:
            return []
        each = f"""SELECT * FROM ({_DELIVERIES} WHERE subscription = ? AND {_DUE}
                   ORDER BY due_at, deliveries.number LIMIT ?) AS due"""
        values: list[Parameter] = []
        for name, most in wanted.items():
            values += [name, *self._due_now(), most]
        found = self._all(" UNION ALL ".join([each] * len(wanted)), *values)
        claimed = list(map(to_delivery, found))
        for delivery in claimed:
            self._writable.write(
                """UPDATE deliveries SET claimed_by = ?, claimed_until = ?
                   WHERE number = ? AND subscription = ?""",
                (by, micros(until), delivery.message.number, delivery.subscription),
            )
        return claimed

    def renew_claims(self, keys: Collection[DeliveryKey], *, by: str, until: datetime) -> None:
        for key in keys:
            self._writable.write(
                """UPDATE deliveries SET claimed_until = ?
                   WHERE number = ? AND subscription = ? AND claimed_by = ?""",
                (micros(until), key.number, key.subscription, by),
            )

    def claimed(self, keys: Collection[DeliveryKey], *, by: str) -> list[Delivery]:
        found = self._all(
            f"""{_DELIVERIES} WHERE claimed_by = ?
                  AND {self._dialect.among("deliveries.number", "?")}""",
            by,
            self._dialect.several(sorted({key.number for key in keys})),
        )
        return [delivery for delivery in map(to_delivery, found) if delivery.key in keys]

    def end_delivery(self, delivery: Delivery) -> None:
        self._writable.write(
            "DELETE FROM deliveries WHERE number = ? AND subscription = ?",
            (delivery.message.number, delivery.subscription),
        )
        self._forget_messages([delivery.message.number])
        self._appoint_in(delivery)

    def put_delivery(self, delivery: Delivery) -> None:
        self._writable.write(
            """UPDATE deliveries
               SET state = ?, attempts = ?, tried_at = ?, due_at = ?, given_up_at = ?,
                   last_error = ?, claimed_by = NULL, claimed_until = NULL
               WHERE number = ? AND subscription = ?""",
            (
                str(delivery.state),
                delivery.attempts,
                micros(delivery.tried_at),
                micros(delivery.due_at),
                micros(delivery.given_up_at),
                delivery.last_error,
                delivery.message.number,
                delivery.subscription,
            ),
        )
        if delivery.state is DeliveryState.UNDELIVERED:
            self._writable.write(
                """UPDATE deliveries SET tried_at = queued_at
                   WHERE subscription = ? AND scope_id = ? AND state = 'pending'
                     AND tried_at IS NULL""",
                (delivery.subscription, delivery.message.scope_id),
            )
        self._appoint_in(delivery)

    def release_deliveries(self, *, by: str) -> None:
        self._writable.write(
            "UPDATE deliveries SET claimed_by = NULL, claimed_until = NULL WHERE claimed_by = ?",
            (by,),
        )

    def note_health(
        self, name: str, *, delivered: int, failed: int, error: str, rest: Rest | None = None
    ) -> None:
        self._writable.write(
            """UPDATE subscriptions
               SET delivered = delivered + :delivered, failed = failed + :failed,
                   failures = CASE WHEN :delivered > 0 THEN 0 ELSE failures + :failed END,
                   last_delivered_at =
                       CASE WHEN :delivered > 0 THEN :now ELSE last_delivered_at END,
                   last_failed_at = CASE WHEN :failed > 0 THEN :now ELSE last_failed_at END,
                   last_error = CASE WHEN :failed > 0 THEN :error ELSE last_error END,
                   rests = :rests, rests_until = :rests_until
               WHERE name = :name""",
            {
                "delivered": delivered,
                "failed": failed,
                "error": error,
                "now": micros(self.real_now),
                "rests": 0 if rest is None else rest.number,
                "rests_until": None if rest is None else micros(rest.until),
                "name": name,
            },
        )

    def next_delivery_at(self, names: Collection[str]) -> datetime | None:
        [[instant]] = self._all(
            f"""SELECT min(CASE WHEN claimed_until > due_at THEN claimed_until ELSE due_at END)
                FROM deliveries
                WHERE due_at IS NOT NULL AND {self._dialect.among("subscription", "?")}""",
            self._dialect.several(names),
        )
        return None if instant is None else to_instant(instant)

    def give_up_waiting(self, name: str, *, before: datetime, error: str, limit: int) -> int:
        found = self._all(
            """SELECT number, scope_id FROM deliveries
               WHERE subscription = ? AND state = 'pending' AND queued_at < ?
                 AND claimed_by IS NULL
                 AND NOT EXISTS (SELECT 1 FROM subscriptions
                                 WHERE name = subscription AND last_delivered_at >= ?)
               ORDER BY number LIMIT ?""",
            name,
            micros(before),
            micros(before),
            limit,
        )
        if found:
            self._writable.write(
                f"""UPDATE deliveries
                    SET state = 'undelivered', due_at = NULL, given_up_at = ?, last_error = ?
                    WHERE subscription = ? AND {self._dialect.among("number", "?")}""",
                (
                    micros(self.real_now),
                    error,
                    name,
                    self._dialect.several([int(row["number"]) for row in found]),
                ),
            )
            self._appoint_among(name, found)
        return len(found)

    def forget_deliveries(
        self, *, given_up_before: datetime, queued_before: datetime, limit: int
    ) -> dict[str, Forgotten]:
        found = self._all(
            """SELECT number, subscription, scope_id, state FROM deliveries
               WHERE given_up_at < ? OR state = 'pending' AND queued_at < ? AND claimed_by IS NULL
               ORDER BY number, subscription LIMIT ?""",
            micros(given_up_before),
            micros(queued_before),
            limit,
        )
        return {
            name: self._forget(name, [row for row in found if row["subscription"] == name])
            for name in sorted({row["subscription"] for row in found})
        }

    def _forget(self, name: str, rows: Sequence[FoundRow]) -> Forgotten:
        numbers = [int(row["number"]) for row in rows]
        self._writable.write(
            f"""DELETE FROM deliveries
                WHERE subscription = ? AND {self._dialect.among("number", "?")}""",
            (name, self._dialect.several(numbers)),
        )
        self._forget_messages(numbers)
        self._writable.write(
            "UPDATE subscriptions SET removed = removed + ? WHERE name = ?", (len(rows), name)
        )
        self._appoint_among(name, rows)
        pending = sum(row["state"] == str(DeliveryState.PENDING) for row in rows)
        return Forgotten(undelivered=len(rows) - pending, pending=pending)

    def _forget_messages(self, numbers: Collection[int]) -> None:
        """Those of them that have arrived everywhere."""
        if numbers:
            self._writable.write(
                f"""DELETE FROM messages WHERE {self._dialect.among("number", "?")}
                    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE number = messages.number)""",
                (self._dialect.several(sorted(set(numbers))),),
            )

    def _appoint_in(self, delivery: Delivery) -> None:
        self._appoint(
            "subscription = :name AND scope_id = :scope_id",
            {"name": delivery.subscription, "scope_id": delivery.message.scope_id},
        )

    def _appoint_among(self, name: str, rows: Sequence[FoundRow]) -> None:
        scopes = {row["scope_id"] for row in rows}
        self._appoint(
            f"subscription = :name AND {self._dialect.among('scope_id', ':scopes')}",
            {"name": name, "scopes": self._dialect.several(sorted(scopes))},
        )

    def _appoint(self, where: str, values: dict[str, Parameter]) -> None:
        """Let the first of each scope go, and no other."""
        self._writable.write(
            f"""UPDATE deliveries SET due_at = NULL
                WHERE {where} AND state = 'pending' AND due_at IS NOT NULL
                  AND claimed_by IS NULL AND {outbox.EARLIER}""",
            values,
        )
        self._writable.write(
            f"""UPDATE deliveries SET due_at = :now
                WHERE {where} AND state = 'pending' AND due_at IS NULL
                  AND NOT {outbox.EARLIER} AND NOT {_CLAIMED}""",
            {**values, "now": micros(self.real_now)},
        )
