"""How many requests a VM may send, and how many connections may be open. All O(1), no timers."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Final, Generic, TypeVar

from forewarned.core.ids import ResourceName
from forewarned.metadata.refusals import Reason, Refusal

T = TypeVar("T")

_FEW: Final = 1024
_LONG: Final = 60.0
"""Seconds."""


class Bucket:
    """A VM's tokens, stored as the one moment at which the bucket will be full again."""

    __slots__ = ("full_at", "is_forgotten", "name")

    def __init__(self, name: ResourceName) -> None:
        self.name = name
        self.full_at = -inf
        self.is_forgotten = False


class RateLimit:
    """A token bucket for each VM. All connections of a VM share it, and may keep a reference."""

    def __init__(self, per_second: float) -> None:
        self._cost = 1 / per_second
        # A bucket holds one second's worth, and never less than one request. The small addition
        # keeps rounding errors from costing a VM a request.
        self._room = max(1.0, self._cost) + 1e-9
        self._buckets: dict[ResourceName, Bucket] = {}
        self._prune_at = _FEW

    def bucket(self, name: ResourceName) -> Bucket:
        found = self._buckets.get(name)
        if found is None:
            found = self._buckets[name] = Bucket(name)
        return found

    def take(self, bucket: Bucket, now: float) -> float:
        """0 for a request within the rate, or the seconds until the next one would be."""
        if bucket.is_forgotten:
            # Another connection of the VM may have a new bucket already.
            bucket = self.bucket(bucket.name)
        full_at = bucket.full_at
        if full_at < now:  # noqa: PLR1730  # max() would cost as much as all the rest
            full_at = now
        full_at += self._cost
        wait = full_at - now - self._room
        if wait > 0:
            return wait
        bucket.full_at = full_at
        return 0

    def prune(self, now: float) -> None:
        """Drop buckets that have long been full: a new one would be the same.

        Buckets of VMs that poll are kept: creating them again every second would cost more than the
        limit itself.
        """
        if len(self._buckets) < self._prune_at:
            return
        since = now - _LONG
        for bucket in [bucket for bucket in self._buckets.values() if bucket.full_at <= since]:
            bucket.is_forgotten = True
            del self._buckets[bucket.name]
        self._prune_at = max(_FEW, 2 * len(self._buckets))


class OpenConnections(Generic[T]):
    """The open connections, counted by the VM or address they come from."""

    def __init__(self, *, most: int, most_per_vm: int) -> None:
        self._most = most
        self._most_per_vm = most_per_vm
        self._keys: dict[T, str | None] = {}
        self._counts: Counter[str] = Counter()
        self._emptied: asyncio.Future[None] | None = None

    def __iter__(self) -> Iterator[T]:
        """Callers that close connections meanwhile must copy first."""
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def refusal(self, key: str | None) -> Refusal | None:
        """Why there is no room for one more. A key of None counts against no VM."""
        if len(self._keys) >= self._most:
            return Refusal(
                reason=Reason.UNAVAILABLE, message="Too many connections.", retry_after=1
            )
        if key is not None and self._counts.get(key, 0) >= self._most_per_vm:
            return Refusal(
                reason=Reason.TOO_MANY_CONNECTIONS,
                message=f"Too many connections: one VM may have {self._most_per_vm}.",
                retry_after=1,
            )
        return None

    def admit(self, connection: T, key: str | None) -> None:
        self._keys[connection] = key
        if key is not None:
            self._counts[key] += 1

    def leave(self, connection: T) -> None:
        """Does nothing if the connection was not admitted."""
        if connection not in self._keys:
            return
        key = self._keys.pop(connection)
        if not self._keys and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)
        if key is None:
            return
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]

    async def emptied(self) -> None:
        if self._keys:
            self._emptied = asyncio.get_running_loop().create_future()
            await self._emptied
