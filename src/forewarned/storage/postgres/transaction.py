"""A transaction of a PostgreSQL database, and what only PostgreSQL is told to write."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from typing_extensions import override

from forewarned.core.errors import UnknownScopeError
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Scope
from forewarned.core.tasks import ActuatorOf
from forewarned.service.records import Binding, Commit, Saved
from forewarned.storage.diff import Delta, fold
from forewarned.storage.history.chain import CHAINED
from forewarned.storage.postgres.locked_scopes import DUE, LockedScopes
from forewarned.storage.postgres.snapshot import PostgresSnapshot
from forewarned.storage.relational.transaction import NextWake, Publishing, RelationalTransaction
from forewarned.storage.relational.write_buffer import WriteBuffer
from forewarned.storage.rows import FoundRow, micros

_UNHURRIED: Final = """
    SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true),
           set_config('idle_in_transaction_session_timeout', '60s', true)
"""
_CHAIN: Final = 0x466F726577636861
"""The number of the advisory lock of those who write to the chain."""
# A row whose transaction is older than all that are under way is the last to be seen of that
# transaction, and of all before it. So no row is committed later that would come before one of
# these. Numbers of rows don't say that: they are given out before the commit.
_UNCHAINED: Final = """
    SELECT *, pg_snapshot_xmin(pg_current_snapshot()) AS xmin FROM history
    WHERE changed >= ?::text::xid8 AND changed < pg_snapshot_xmin(pg_current_snapshot())
        AND NOT EXISTS (SELECT 1 FROM history_chain WHERE history_id = history.id)
    ORDER BY changed, id LIMIT ?
"""
_OUTBOX: Final = 4
"""The migration that made it."""


class PostgresTransaction(RelationalTransaction, PostgresSnapshot):
    @override
    def __init__(
        self,
        buffer: WriteBuffer,
        now: datetime,
        *,
        next_wake: NextWake,
        actuator_of: ActuatorOf,
        publishing: Publishing,
        locked: LockedScopes,
        is_rerun: bool,
    ) -> None:
        """`is_rerun` says that the function has been in another's way, or in its own."""
        super().__init__(
            buffer, now, next_wake=next_wake, actuator_of=actuator_of, publishing=publishing
        )
        self._locked = locked
        self._is_rerun = is_rerun
        self._first: int | None = None
        """The store's offset of incarnations; None before it is first needed."""

    @override
    def load_all(self, scope_ids: Collection[ScopeId]) -> list[Scope]:
        self._locked.lock([each for each in scope_ids if each not in self.written])
        return super().load_all(scope_ids)

    @override
    def claim_due(self, limit: int) -> list[ScopeId]:
        due = self._all(DUE, micros(self.now), limit)
        self._locked.claimed(due)
        claimed = [ScopeId(row["id"]) for row in due]
        self._claimed.update(claimed)
        return claimed

    @override
    def exists(self, scope_id: ScopeId) -> bool:
        if self._locked.find(scope_id) is not None:
            return True
        if scope_id not in self.written and self._locked.is_absent(scope_id):
            # Another node may add it meanwhile: then this transaction fails, and is run again.
            return False
        return super().exists(scope_id)

    @override
    def correct_wakes(self) -> None:
        # Nodes that start together do this one after another, and a large fleet takes long.
        self._all(_UNHURRIED)
        super().correct_wakes()

    def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        # Locked in order, as all scopes are. One that was marked meanwhile is compared anew.
        self._writable.write(
            """UPDATE scopes SET last_read_at = new.at
               FROM (SELECT number, at
                     FROM scopes JOIN unnest(?::text[], ?::bigint[]) AS mark(id, at) USING (id)
                     WHERE active = 1 AND (last_read_at IS NULL OR last_read_at <= at - ?)
                     ORDER BY number FOR NO KEY UPDATE OF scopes) AS new
               WHERE scopes.number = new.number""",
            (
                self._dialect.several(marks),
                self._dialect.several([micros(at) for at in marks.values()]),
                micros(older_by),
            ),
        )

    def take_lease(self, name: str, holder: str, length: timedelta) -> int | None:
        """The token of a lease that no one held; None if somebody does."""
        row = self._one(
            """INSERT INTO leases (name, holder, until, token) VALUES (?, ?, ?, 1)
               ON CONFLICT (name) DO UPDATE
               SET holder = excluded.holder, until = excluded.until, token = leases.token + 1
               WHERE leases.until <= ? RETURNING token""",
            name,
            holder,
            micros(self.now + length),
            micros(self.now),
        )
        return None if row is None else int(row["token"])

    def renew_lease(self, name: str, token: int, length: timedelta) -> bool:
        """Whether it is still held. No one else can take it before this transaction has ended."""
        row = self._one(
            "UPDATE leases SET until = ? WHERE name = ? AND token = ? RETURNING token",
            micros(self.now + length),
            name,
            token,
        )
        return row is not None

    @override
    def _unchained(self, limit: int) -> tuple[Sequence[FoundRow], str]:
        # Another node may be at it, and then it sees to these rows too.
        [[is_mine]] = self._all("SELECT pg_try_advisory_xact_lock(?)", _CHAIN)
        if not is_mine:
            return (), ""
        [[epoch]] = self._all("SELECT epoch FROM store")
        noted_epoch, _, noted = (self.note(CHAINED) or "").partition(" ")
        if noted_epoch != str(epoch):
            # A restore has given rows other transactions, so all of them have to be looked at.
            self._all(_UNHURRIED)
            noted = "0"
        found = self._all(_UNCHAINED, noted, limit)
        if not found:
            return (), ""
        is_all = len(found) < limit
        return found, f"{epoch} {found[-1]['xmin' if is_all else 'changed']}"

    @override
    def _seen_up_to(self, row: int) -> str:
        # As many rows as there are to remove: for the first time that may be years of them.
        self._all(_UNHURRIED)
        [[last]] = self._all("SELECT max(changed::text::bigint) FROM history WHERE id < ?", row)
        return str(last)

    @property
    def publishes(self) -> bool:
        """Whether an event has been scheduled."""
        return self._builder.publishes

    def commit(self) -> Commit:
        """Without what no node can say while others commit: the store's feed tells of that."""
        return self._builder.commit(next_wake=None, first_vm=None)

    @override
    def _subscribed(self) -> None:
        # Nodes that don't know of the outbox would leave messages out.
        self._writable.write(
            """UPDATE store SET oldest_code = greatest(oldest_code, ?),
                   publishes = CASE WHEN EXISTS (SELECT 1 FROM subscriptions) THEN 1 ELSE 0 END""",
            (_OUTBOX,),
        )

    @override
    def _saved(self, scope_id: ScopeId) -> Saved:
        saved = self.written.get(scope_id) or self._locked.find(scope_id)
        if saved is None:
            self._locked.lock([scope_id])
            saved = self._locked.find(scope_id)
        if saved is None:
            raise UnknownScopeError(scope_id)
        return saved

    @override
    def _offset(self) -> int:
        if self._first is None:
            # Scopes before the store, as all transactions lock them: see `epoch`.
            self._writable.write("LOCK TABLE scopes IN ROW EXCLUSIVE MODE")
            # Locked, so that it stays what it is until the scope has been written.
            row = self._one("SELECT incarnation_offset FROM store FOR SHARE")
            self._first = 0 if row is None else int(row["incarnation_offset"])
        return self._first

    @override
    def _refuse_taken(
        self, differences: Sequence[Delta], joining: Mapping[ResourceName, Binding]
    ) -> None:
        # PostgreSQL finds a name or an id that is taken when it is written. Only to say which one
        # it was, and whose, is it worth a question for each scope: then the function is run again.
        if self._is_rerun:
            super()._refuse_taken(differences, joining)

    @override
    def _joined(self, bindings: Collection[Binding]) -> None:
        super()._joined(bindings)
        names = self._dialect.several([fold(binding.name) for binding in bindings])
        self._writable.write("DELETE FROM unbound WHERE folded = ANY(?)", (names,))

    @override
    def _write_bindings(self, bindings: Collection[Binding]) -> None:
        last = {fold(binding.name): binding for binding in bindings}
        names = self._dialect.several(last)
        # All rows are written at once, and no two may have the same address meanwhile.
        self._writable.write("UPDATE resources SET address = NULL WHERE folded = ANY(?)", (names,))
        super()._write_bindings(last.values())
        self._writable.write("DELETE FROM unbound WHERE folded = ANY(?)", (names,))

    @override
    def _remove(self, names: Collection[ResourceName]) -> None:
        super()._remove(names)
        # Where nodes that look only at what has changed find that these are gone.
        self._writable.write(
            """INSERT INTO unbound (folded, name, at)
               SELECT folded, name, ? FROM unnest(?::text[], ?::text[]) AS gone(folded, name)
               ON CONFLICT (folded) DO UPDATE
               SET name = excluded.name, at = excluded.at, changed = excluded.changed""",
            (
                micros(self.now),
                self._dialect.several([fold(name) for name in names]),
                self._dialect.several(names),
            ),
        )
