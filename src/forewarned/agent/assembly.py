"""Puts the agent together from its file, and runs it until it is stopped."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from forewarned import __version__
from forewarned.agent.boot_id import boot_id
from forewarned.agent.config.settings import (
    AgentSettings,
    AnyReadiness,
    DirectoryReadiness,
    ForewarnedReadiness,
    KubernetesReadiness,
)
from forewarned.agent.event_loop import EventLoop
from forewarned.agent.event_worker import WorkerContext
from forewarned.agent.hooks.ports import Hook
from forewarned.agent.hooks.retries import RetryingHook
from forewarned.agent.journal import Journal, JournalError
from forewarned.agent.lock import StateInUseError, UnusableStateError, sole_agent
from forewarned.agent.matching import plan_for
from forewarned.agent.readiness.directory import DirectoryReports
from forewarned.agent.readiness.ports import Readiness
from forewarned.agent.service_clock import ServiceClock
from forewarned.agent.status.listener import Listener, ListenError
from forewarned.agent.status.metrics import Counters, render
from forewarned.agent.status.report import Reporter
from forewarned.agent.status.wire import AgentStatus
from forewarned.client import AsyncScheduledEvents, ScheduledEventsError
from forewarned.clock import monotonic, wall_clock

_log = logging.getLogger(__name__)

_AGAIN: Final = 3.0


class AgentError(Exception):
    """The agent can't start, or can't go on."""


async def run(
    settings: AgentSettings,
    *,
    boot: str | None = None,
    open_journal: Callable[[Path], Journal] = Journal,
) -> None:
    """Returns when it is stopped, by SIGTERM or SIGINT. `boot` is the VM's boot id.

    Raises AgentError.
    """
    # They log every request: one a second, and some to secret URLs.
    for library in ("httpx2", "httpcore2"):
        logging.getLogger(library).setLevel(logging.WARNING)
    running = asyncio.current_task()
    assert running is not None  # noqa: S101 - for the type checker
    loop = asyncio.get_running_loop()
    is_stopped = False

    def stop() -> None:
        nonlocal is_stopped
        is_stopped = True
        running.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        journal = open_journal(settings.journal)
        await _run(settings, journal, boot_id() if boot is None else boot)
    except asyncio.CancelledError:
        if not is_stopped:
            raise
        running.uncancel()
        _log.info("agent stopped")
    except (StateInUseError, UnusableStateError, JournalError, ListenError) as error:
        raise AgentError(str(error)) from error
    except ExceptionGroup as group:
        # From the task of an event: without a journal no hook may run.
        failures, others = group.split(JournalError)
        if failures is None or others is not None:
            raise
        raise AgentError(str(failures.exceptions[0])) from group
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def make_hooks(settings: AgentSettings) -> dict[str, Hook]:
    return {name: RetryingHook(table) for name, table in settings.hooks.items()}


async def _run(settings: AgentSettings, journal: Journal, boot: str) -> None:
    table = settings.agent
    client = AsyncScheduledEvents(settings.endpoint, resource=settings.resource)
    readiness = (
        None
        if table.readiness is None
        else open_readiness(table.readiness, endpoint=lambda: client.contact().endpoint)
    )
    front = _Front(client, now=ServiceClock(client.contact, own=wall_clock).now)
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(sole_agent(table.state))
        stack.enter_context(journal)
        await stack.enter_async_context(client)
        if table.listen is not None:
            # Before anything else, so that the status shows what the agent is waiting for.
            listener = Listener(
                table.listen.host, table.listen.port, status=front.status, metrics=front.metrics
            )
            await stack.enter_async_context(listener)
            _log.info("agent is listening", extra={"address": "{}:{}".format(*listener.address)})
        now = front.now
        context = WorkerContext(
            me=settings.resource or await front.own_name(),
            journal=journal,
            hooks=make_hooks(settings),
            targets={name: hook.targets for name, hook in settings.hooks.items()},
            approve=client.approve,
            now=now,
            monotonic=monotonic,
            counters=front.counters,
            readiness=readiness,
            ready_timeout=table.ready_timeout,
        )
        runner = EventLoop(
            client,
            context,
            plan_for=lambda sighting: plan_for(settings, sighting, now().astimezone()),
            poll=table.poll,
            boot=boot,
        )
        front.reporter = Reporter(
            runner=runner,
            context=context,
            contact=client.contact,
            clock=wall_clock,
            started_at=front.started_at,
            boot=boot,
        )
        _log.info("agent is running", extra={"resource": context.me})
        await runner.run()


def open_readiness(settings: AnyReadiness, *, endpoint: Callable[[], str | None]) -> Readiness:
    """`endpoint` is where the VM's metadata is; None while that is not known."""
    match settings:
        case DirectoryReadiness(path=path):
            return DirectoryReports(path)
        case KubernetesReadiness():
            # Most agents don't need it, and its library is slow to import.
            from forewarned.agent.readiness.kubernetes import LeaseReports  # noqa: PLC0415

            return LeaseReports(
                server=settings.server,
                namespace=settings.namespace,
                credentials=settings.credentials,
            )
        case ForewarnedReadiness():
            from forewarned.agent.readiness.server import ServerReports  # noqa: PLC0415 - as above

            return ServerReports(endpoint)


class _Front:
    """What the listener shows, even before the agent knows which VM it is on."""

    def __init__(self, client: AsyncScheduledEvents, *, now: Callable[[], datetime]) -> None:
        self.reporter: Reporter | None = None
        self.counters = Counters()
        self.now = now
        self.started_at = wall_clock()
        self._client = client
        self._why = "the agent is starting"

    async def own_name(self) -> str:
        """Asks until there is an answer: a VM's services start in any order."""
        is_first = True
        while True:
            try:
                return (await self._client.me()).name
            except ScheduledEventsError as error:
                self._why = f"can't find out this VM's name: {error}"
                if is_first:
                    _log.warning("this VM's name is not known", extra={"why": str(error)})
                is_first = False
            await asyncio.sleep(_AGAIN)

    def metrics(self) -> str:
        return render(self.status(), self.counters, age=self._client.contact().age)

    def status(self) -> AgentStatus:
        if self.reporter is not None:
            return self.reporter.status()
        return AgentStatus(
            now=wall_clock(),
            version=__version__,
            resource="",
            endpoint=self._client.contact().endpoint or "",
            started_at=self.started_at,
            healthy=False,
            ready=False,
            why=self._why,
        )
