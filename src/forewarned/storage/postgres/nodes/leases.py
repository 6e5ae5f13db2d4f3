"""Leases that several nodes share: a node must renew one, or lose it.

Invariant: of two nodes that both believe they hold a lease, only the one with the newer token can
commit what the lease is for.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final, Protocol, TypeVar, runtime_checkable

from forewarned.service.errors import LeaseLostError, StoreUnavailableError
from forewarned.service.ports import Lease, Transaction

T = TypeVar("T")

_LENGTH: Final = timedelta(seconds=15)
"""Each transaction that a lease is for begins by renewing it."""
_PAUSE: Final = 0.2
"""Seconds until a lease that another node holds is asked for again."""


@runtime_checkable
class LeasingTransaction(Protocol):
    def take_lease(self, name: str, holder: str, length: timedelta) -> int | None:
        """The token of a lease that no one held; None if somebody does."""

    def renew_lease(self, name: str, token: int, length: timedelta) -> bool:
        """Whether it is still held. No one else can take it before this transaction has ended."""


class Transact(Protocol):
    def __call__(self, function: Callable[[LeasingTransaction], T]) -> Awaitable[T]: ...


class SharedLeases:
    def __init__(self, transact: Transact, holder: str) -> None:
        """`holder` is this node's id."""
        self._transact = transact
        self._holder = holder

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[Lease]:
        held = await self._taken(name)
        try:
            yield held
        finally:
            # If it can't be given back, it runs out.
            with suppress(StoreUnavailableError):
                await self._transact(held.give_back)

    async def _taken(self, name: str) -> "_SharedLease":
        while True:
            token = await self._transact(lambda tx: tx.take_lease(name, self._holder, _LENGTH))
            if token is not None:
                return _SharedLease(name, token)
            await asyncio.sleep(_PAUSE)


class _SharedLease:
    def __init__(self, name: str, token: int) -> None:
        self._name = name
        self._token = token

    def check(self, tx: Transaction) -> None:
        # Leases of this store are used in its own transactions only, or in a preview of one.
        if not isinstance(tx, LeasingTransaction):
            raise TypeError(f"not a transaction of this store: {tx!r}")
        if not tx.renew_lease(self._name, self._token, _LENGTH):
            raise LeaseLostError(self._name)

    def give_back(self, tx: LeasingTransaction) -> None:
        tx.renew_lease(self._name, self._token, timedelta(0))
