"""The service that a test talks to, from its start to its end."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime

from typing_extensions import override

from forewarned.core.model import Priority
from forewarned.testing import _fleet
from forewarned.testing._faults import Faults
from forewarned.testing._fleet import Wish
from forewarned.testing._running import DEFAULT_VM, Running
from forewarned.testing._vm import Vm
from forewarned.testing._words import Span, choose, span, span_or_none

__tracebackhide__ = True


class ScheduledEventsService:
    """Scheduled events for a test. All of it may be used from any thread."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._vms: dict[str, tuple[Vm, Wish]] = {}
        self._making = threading.Lock()
        self.faults = Faults(running)
        """What is to go wrong between VMs and the service."""

    @override
    def __repr__(self) -> str:
        return f"<ScheduledEventsService at {self._running.endpoint}>"

    @property
    def endpoint(self) -> str:
        """Where it listens: the endpoint of the default VM, the one that `vm()` gives.

        Other VMs have endpoints of their own, below this one.
        """
        with self._making:
            if DEFAULT_VM not in self._vms:
                self._make(Wish(name=DEFAULT_VM))
        return self._running.endpoint

    @property
    def now(self) -> datetime:
        """Its clock, which stands still unless it is advanced."""
        return self._running.clock.now()

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
        A VM counts as having read it, unless `active` is False. Raises ValueError for what makes
        no sense, or differs from what the VM was made as.
        """
        wish = Wish(
            name=name,
            scale_set=scale_set,
            availability_set=availability_set,
            priority=choose(Priority, priority, "a priority"),
            terminate_notice=span_or_none(terminate_notice),
            is_active=active,
        )
        with self._making:
            vm, made = self._vms.get(str(name).casefold()) or self._make(wish)
        wish = replace(wish, name=made.name)
        if wish not in (made, Wish(name=made.name)):
            raise ValueError(
                f"VM {made.name!r} was created {made.shown()}, and can't be created again "
                f"{wish.shown()}"
            )
        return vm

    def _make(self, wish: Wish) -> tuple[Vm, Wish]:
        self._running.call(_fleet.make(self._running.use_cases, wish))
        made = self._vms[wish.name.casefold()] = Vm(self._running, wish.name), wish
        return made

    def advance(self, by: Span) -> datetime:
        """Move the clock forward, and return where it stands then.

        By `"10m"`, by a timedelta, or by a number of seconds.

        Whatever falls due on the way has happened, in order, when this returns: events have
        started and completed, and VMs that wait for a change of the document are being answered.
        """
        clock_control = self._running.use_cases.clock_control
        return self._running.call(clock_control.step(span(by))).now


def serve(*, start: datetime | None = None) -> AbstractContextManager[ScheduledEventsService]:
    """Scheduled events in this process, on a free port of loopback, until the block ends.

    The clock stands at `start`, by default the time it is, until it is advanced.
    """
    if start is not None and start.tzinfo is None:
        raise ValueError("start needs a time zone, as in datetime(2026, 1, 5, tzinfo=UTC)")
    return _serving(Running(start))


@contextmanager
def _serving(running: Running) -> Iterator[ScheduledEventsService]:
    running.start()
    try:
        yield ScheduledEventsService(running)
    finally:
        running.stop()
