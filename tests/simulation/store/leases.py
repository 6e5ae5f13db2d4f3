"""Leases that several nodes share, kept in notes: a node must renew one or lose it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol, TypeVar

from forewarned.service.errors import LeaseLostError, StoreUnavailableError
from forewarned.service.ports import Lease, Transaction

T = TypeVar("T")

_LENGTH: Final = timedelta(seconds=15)
_PAUSE: Final = 0.2


class Transact(Protocol):
    def __call__(self, function: Callable[[Transaction], T]) -> Awaitable[T]: ...


class _Row(NamedTuple):
    token: int
    until: datetime


class NotedLeases:
    def __init__(self, transact: Transact) -> None:
        self._transact = transact

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[Lease]:
        held = await self._taken(name)
        try:
            yield held
        finally:
            # If it can't be given back, it runs out.
            with suppress(StoreUnavailableError):
                await self._transact(held.give_back)

    async def _taken(self, name: str) -> "_NotedLease":
        def take(tx: Transaction) -> int | None:
            row = _read(tx, name)
            if row is not None and row.until > tx.now:
                return None
            token = 1 if row is None else row.token + 1
            _write(tx, name, _Row(token, tx.now + _LENGTH))
            return token

        while True:
            token = await self._transact(take)
            if token is not None:
                return _NotedLease(name, token)
            await asyncio.sleep(_PAUSE)


class _NotedLease:
    def __init__(self, name: str, token: int) -> None:
        self._name = name
        self._token = token

    def check(self, tx: Transaction) -> None:
        row = _read(tx, self._name)
        if row is None or row.token != self._token:
            raise LeaseLostError(self._name)
        _write(tx, self._name, _Row(self._token, tx.now + _LENGTH))

    def give_back(self, tx: Transaction) -> None:
        row = _read(tx, self._name)
        if row is not None and row.token == self._token:
            _write(tx, self._name, _Row(self._token, tx.now))


def _read(tx: Transaction, name: str) -> _Row | None:
    note = tx.note(f"lease {name}")
    if note is None:
        return None
    token, _, until = note.partition(" ")
    return _Row(int(token), datetime.fromisoformat(until))


def _write(tx: Transaction, name: str, row: _Row) -> None:
    tx.put_note(f"lease {name}", f"{row.token} {row.until.isoformat()}")
