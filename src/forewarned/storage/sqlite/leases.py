"""Leases of a store that one process has to itself: no other can take one over."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forewarned.service.ports import Lease, Transaction


class ProcessLeases:
    def __init__(self) -> None:
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[Lease]:
        async with self._locks[name]:
            yield _HeldLease()


class _HeldLease:
    def check(self, tx: Transaction) -> None:
        """Never lost: it ends with the process at the latest, as all that it is for."""
