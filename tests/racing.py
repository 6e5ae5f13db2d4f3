"""A store whose transactions all lose a race at first, and which functions have to bear that."""

import ast
import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime, timedelta
from types import FrameType
from typing import Final, NamedTuple, TypeVar

import pytest

from forewarned.core.ids import ScopeId
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Lease, Listener, Snapshot, Store, Transaction
from forewarned.service.records import Commit
from tests.source_tree import SRC, modules, parsed

T = TypeVar("T")
MANY: Final = 10_000

_WAYS_IN: Final = {"decide", "tend"}
"""The methods that take a transaction function: the engine's, and those that pass it on."""
_INSIDE: Final = (".<locals>.<listcomp>", ".<locals>.<genexpr>", ".<locals>.<lambda>")


class Caller(NamedTuple):
    """A function that has a transaction function run."""

    module: str
    function: str


class _LostRaceError(Exception):
    pass


class RacingStore:
    """Loses every first race: the function is run, rolled back, and run again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.callers: set[Caller] = set()
        """Those that have asked for a transaction."""

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        def lose(tx: Transaction) -> None:
            with suppress(Exception):  # a function that refuses may lose its race as well
                function(tx)
            raise _LostRaceError

        self.callers.update(_callers(inspect.currentframe()))
        with pytest.raises(_LostRaceError):
            await self._store.transact(lose, touching=touching)
        return await self._store.transact(function, touching=touching, tell=tell)

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        await self._store.mark_read(marks, older_by=older_by)

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return self._store.lease(name)

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        return await self._store.read(question)


async def outcome_of_lost_races(
    outcome: Callable[[Callable[[Store], Store]], Awaitable[T]],
) -> tuple[T, set[Caller]]:
    """What came of it, as if no race had been lost, and who asked for a transaction.

    `outcome` is given what to wrap its store with.
    """
    racing: list[RacingStore] = []

    def losing(store: Store) -> Store:
        racing.append(RacingStore(store))
        return racing[-1]

    once = await outcome(lambda store: store)
    twice = await outcome(losing)

    assert twice == once
    return once, set().union(*(each.callers for each in racing))


def contents(snapshot: Snapshot) -> list[object]:
    """What the store holds."""
    events = snapshot.events(EventFilter(limit=MANY))
    return [
        snapshot.history(HistoryFilter(limit=MANY)),
        events,
        [saved.scope for saved in snapshot.scopes()],
        list(snapshot.bindings()),
        list(snapshot.declarations("")),
        snapshot.drains(),
        snapshot.tasks_of([each.event.id for each in events]),
    ]


def _callers(frame: FrameType | None) -> Iterator[Caller]:
    """Up to the first that is no way in itself."""
    while frame is not None and frame.f_code.co_name in {"transact", *_WAYS_IN}:
        frame = frame.f_back
        if frame is not None:
            name = frame.f_code.co_qualname
            for inside in _INSIDE:
                name = name.removesuffix(inside)
            yield Caller(frame.f_globals["__name__"], name)


def callers_in(part: str) -> set[Caller]:
    """Those of a package, as the source has them."""
    found: set[Caller] = set()
    for path in modules(f"src/forewarned/{part.replace('.', '/')}"):
        module = ".".join(("forewarned", *path.relative_to(SRC).with_suffix("").parts))
        found |= {Caller(module, name) for name in _deciding(parsed(path), (), "")}
    return found


def _deciding(node: ast.AST, names: tuple[str, ...], function: str) -> Iterator[str]:
    """The coroutine functions below the node that call a way in; `function` is the one it is in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _deciding(child, (*names, child.name), function)
        elif isinstance(child, ast.AsyncFunctionDef | ast.FunctionDef):
            name = ".".join((*names, child.name))
            is_async = isinstance(child, ast.AsyncFunctionDef)
            inside = (*names, child.name, "<locals>")
            yield from _deciding(child, inside, name if is_async else function)
        else:
            if (
                isinstance(child, ast.Call)
                and isinstance(child.func, ast.Attribute)
                and child.func.attr in _WAYS_IN
            ):
                yield function
            yield from _deciding(child, names, function)
