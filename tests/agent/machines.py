"""An agent in the test's own process, whose client and hooks do as they are told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Final

from forewarned.agent.event_loop import EventLoop
from forewarned.agent.event_worker import WorkerContext
from forewarned.agent.hooks.ports import Hook
from forewarned.agent.journal import Journal
from forewarned.agent.model import Plan, Progress, Sighting
from forewarned.agent.readiness.ports import Readiness
from forewarned.agent.status.metrics import Counters
from forewarned.agent.status.report import Reporter
from forewarned.clock import monotonic
from tests.agent.journeys import EVENT, ME, a_plan, a_step
from tests.agent.stubs import StubClient, StubHook
from tests.builders import DAY, MINUTE, NOON, SECOND

KEY: Final = EVENT.lower()
PLAN: Final = a_plan(a_step("drain", has_undo=True), recover=(a_step("check"),))


class Machine:
    """An agent in this process; what it holds outlives a restart of it."""

    def __init__(self, folder: Path, plan: Plan = PLAN) -> None:
        self.folder = folder
        self.plan = plan
        self.plan_for: Callable[[Sighting], Plan] = lambda _: self.plan
        self.hooks: dict[str, StubHook] = {"drain": StubHook(), "check": StubHook()}
        self.targets: dict[str, frozenset[str]] = {}
        self.readiness: Readiness | None = None
        self.progress: Mapping[str, Progress] = {}
        self.reporter: Reporter | None = None

    @contextlib.asynccontextmanager
    async def running(self, client: StubClient, *, boot: str = "one") -> AsyncIterator[EventLoop]:
        with Journal(self.folder / "journal") as journal:
            self.progress = journal.events
            hooks: Mapping[str, Hook] = self.hooks
            context = WorkerContext(
                me=ME,
                journal=journal,
                hooks=hooks,
                approve=client.approve,
                now=lambda: NOON,
                monotonic=monotonic,
                counters=Counters(),
                targets=self.targets,
                readiness=self.readiness,
                ready_timeout=MINUTE,
            )
            runner = EventLoop(client, context, plan_for=self.plan_for, poll=SECOND, boot=boot)
            self.reporter = Reporter(
                runner=runner,
                context=context,
                contact=client.contact,
                clock=lambda: NOON + DAY,
                started_at=NOON + DAY - MINUTE,
                boot=boot,
            )
            task = asyncio.create_task(runner.run())
            try:
                yield runner
            finally:
                task.cancel()
                await asyncio.wait([task])
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def at(self, key: str = KEY) -> Progress | None:
        return self.progress.get(key)
