"""Processes in one thread: tasks that end together, between any two of their steps."""

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_OWNER: "ContextVar[Process | None]" = ContextVar("owner", default=None)


class Process:
    """What it starts belongs to it, and so does all that is started by that."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = 64
        self._context = copy_context()
        self._context.run(_OWNER.set, self)

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        return asyncio.get_running_loop().create_task(work, context=self._context)

    def own(self, task: "asyncio.Task[Any]") -> None:
        """In the order of their making. Also kept from the garbage collector, which has no seed."""
        self._tasks.append(task)
        if len(self._tasks) >= self._prune_at:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._prune_at = 2 * len(self._tasks) + 64

    def kill(self) -> None:
        """Its memory is gone. What it has written elsewhere stays."""
        self.is_dead = True
        for task in self._tasks:
            task.cancel()


def current() -> Process | None:
    return _OWNER.get()


def disown() -> None:
    """What is started from here on belongs to no process: no end of one stops it."""
    _OWNER.set(None)


def make_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, T],
    context: Context | None = None,
    **_: Any,
) -> "asyncio.Task[T]":
    """Makes the tasks of a loop: each belongs to the process that made it."""
    task = asyncio.Task(work, loop=loop, context=context)
    owner = _OWNER.get() if context is None else context.get(_OWNER)
    if owner is not None:
        owner.own(task)
    return task
