"""The service that a test talks to, from its start to its end."""

import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from os import PathLike
from pathlib import Path

from typing_extensions import override

from forewarned.core.model import Priority
from forewarned.scenarios.ports import Handler
from forewarned.scenarios.report import Report
from forewarned.testing import _fleet
from forewarned.testing._arguments import Span, choose, span, span_or_none
from forewarned.testing._faults import Faults
from forewarned.testing._fleet import VmSpec
from forewarned.testing._play import play_file
from forewarned.testing._server_thread import DEFAULT_VM, ServerThread
from forewarned.testing._vm import Vm

__tracebackhide__ = True


class ScheduledEventsService:
    """Scheduled events for a test. All of it may be used from any thread."""

    def __init__(self, server: ServerThread) -> None:
        self._server = server
        self._vms: dict[str, tuple[Vm, VmSpec]] = {}
        self._making = threading.Lock()
        self.faults = Faults(server)
        """What is to go wrong between VMs and the service."""

    @override
    def __repr__(self) -> str:
        return f"<ScheduledEventsService at {self._server.endpoint}>"

    @property
    def endpoint(self) -> str:
        """Where it listens: the endpoint of the default VM, the one that `vm()` returns.

        Other VMs have endpoints of their own, below this one.
        """
        with self._making:
            if DEFAULT_VM not in self._vms:
                self._make(VmSpec(name=DEFAULT_VM))
        return self._server.endpoint

    @property
    def now(self) -> datetime:
        """Its clock, which moves only when you advance it."""
        return self._server.clock.now()

    def vm(
        self,
        name: str = DEFAULT_VM,
        *,
        scale_set: str | None = None,
        availability_set: str | None = None,
        priority: str = "Regular",
        terminate_notice: Span | None = None,
        active: bool = True,
    ) -> Vm:
        """The VM of this name, made on first use. VMs of one set share a document.

        Events of VMs that have never read their document are not announced, as on Azure.
        A VM counts as having read it, unless `active` is False. Raises ValueError for invalid
        arguments, or if they differ from those the VM was created with.
        """
        spec = VmSpec(
            name=name,
            scale_set=scale_set,
            availability_set=availability_set,
            priority=choose(Priority, priority, "a priority"),
            terminate_notice=span_or_none(terminate_notice),
            is_active=active,
        )
        with self._making:
            vm, made = self._vms.get(str(name).casefold()) or self._make(spec)
        spec = replace(spec, name=made.name)
        if spec not in (made, VmSpec(name=made.name)):
            raise ValueError(
                f"VM {made.name!r} was created {made.shown()}, and can't be created again "
                f"{spec.shown()}"
            )
        return vm

    def _make(self, spec: VmSpec) -> tuple[Vm, VmSpec]:
        self._server.call(_fleet.make(self._server.use_cases, spec))
        made = self._vms[spec.name.casefold()] = Vm(self._server, spec.name), spec
        return made

    def advance(self, by: Span) -> datetime:
        """Move the clock forward by `"10m"`, a timedelta, or a number of seconds.

        Returns the new time of the clock.

        Whatever falls due on the way has happened, in order, when this returns: events have
        started and completed, and VMs that wait for a change of the document are being answered.
        """
        clock_control = self._server.use_cases.clock_control
        return self._server.call(clock_control.step(span(by))).now

    def play(
        self,
        file: str | PathLike[str],
        handler: Handler | Callable[[str], Awaitable[object]] | Sequence[str],
        *,
        patience: float = 1.0,
    ) -> Report:
        """Play a scenario file, on a service with its own VMs and its own clock.

        The handler is an async function that takes the endpoint, and is canceled where the scenario
        kills it; or a command, as a list of words, in which `{endpoint}` stands for the URL of the
        service. Without `{endpoint}` the command finds the service at 169.254.169.254, in a
        namespace, which only Linux has.

        `patience` multiplies the handler's time limits, for slow machines. Raises
        ScenarioFailedError if an expectation does not hold, ValueError for a file with mistakes,
        RuntimeError where namespaces are not allowed.
        """
        return self._server.call(play_file(Path(file), handler, patience=patience))


def serve(*, start: datetime | None = None) -> AbstractContextManager[ScheduledEventsService]:
    """Scheduled events in this process, on a free port of loopback, until the block ends.

    The clock stays at `start`, by default the current time, until you advance it.
    """
    if start is not None and start.tzinfo is None:
        raise ValueError("start needs a time zone, as in datetime(2026, 1, 5, tzinfo=UTC)")
    return _serving(ServerThread(start))


@contextmanager
def _serving(server: ServerThread) -> Iterator[ScheduledEventsService]:
    server.start()
    try:
        yield ScheduledEventsService(server)
    finally:
        server.stop()
