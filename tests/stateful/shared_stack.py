"""One PostgreSQL under several stores, as nodes have it, which take turns at every change."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import cycle
from typing import ClassVar, TypeVar

from typing_extensions import override

from forewarned.config.values import DatabaseUrl
from forewarned.core import lifecycle
from forewarned.core.ids import ScopeId
from forewarned.service.ports import Lease, Listener, Snapshot, Store, Transaction
from forewarned.service.records import Commit
from forewarned.storage.postgres.store import PostgresStore
from tests.builders import a_node_record
from tests.postgresql.databases import Database, Databases
from tests.stateful.stack import Stack

T = TypeVar("T")


class TakingTurns:
    """Each change by another store than the last one: neither may trust what it has seen itself.

    Changes are told in order, and with what comes next, because the server over them follows
    no feed. So one change is made after another.
    """

    def __init__(self, stores: Collection[PostgresStore]) -> None:
        self._stores = cycle(stores)
        self._turn = asyncio.Lock()

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        async with self._turn:
            result, commit = await next(self._stores).transact(function, touching=touching)
            commit = await next(self._stores).read(partial(_completed, commit))
            if tell is not None:
                tell(commit)
        return result, commit

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        await next(self._stores).mark_read(marks, older_by=older_by)

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return next(self._stores).lease(name)

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        return await next(self._stores).read(question)


class SharedStack(Stack):
    """A crash leaves PostgreSQL as it is."""

    databases: ClassVar[Databases]
    template: ClassVar[Database]

    @override
    def _prepare(self) -> None:
        self._made = self.databases.copy(self.template)
        self._database = self._made.__enter__()
        self._opened = AsyncExitStack()

    @override
    async def _open_store(self) -> Store:
        stores = [self._store(node) for node in ("node1", "node2", "node3")]
        return TakingTurns([await self._opened.enter_async_context(store) for store in stores])

    @override
    async def _close_store(self) -> None:
        await self._opened.aclose()

    @override
    async def _abandon_store(self) -> None:
        await self._opened.aclose()

    @override
    async def close(self) -> None:
        await super().close()
        self._made.__exit__(None, None, None)

    def _store(self, node: str) -> PostgresStore:
        return PostgresStore(
            DatabaseUrl.parse(self._database.url),
            node=a_node_record(node),
            next_wake=partial(lifecycle.next_wake, rules=self.rules),
            actuator_of=self.actuator_of,
            rules={},
            read_clock=lambda _: self.now,
        )


def _completed(commit: Commit, snapshot: Snapshot) -> Commit:
    is_moved = commit.bound or commit.unbound
    return replace(
        commit,
        next_wake=snapshot.next_wake(),
        first_vm=snapshot.first_vm() if is_moved else None,
    )
