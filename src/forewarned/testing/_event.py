"""An event, as the test that scheduled it sees it."""

from collections.abc import Callable
from datetime import datetime

from typing_extensions import override

from forewarned.core import model
from forewarned.core.ids import EventId
from forewarned.core.model import EventStatus, EventType
from forewarned.testing._ledger import WaitTimeoutError
from forewarned.testing._server_thread import TEST, ServerThread

__tracebackhide__ = True

_OVER = (EventStatus.COMPLETED, EventStatus.CANCELED)


class Event:
    """One planned interruption. Its properties are as they are now."""

    def __init__(self, server: ServerThread, event_id: EventId) -> None:
        self._server = server
        self.id: str = event_id
        """As the document has it."""

    @override
    def __repr__(self) -> str:
        return f"<Event {self.type} {self.status} of {', '.join(self.resources)}: {self.id}>"

    @property
    def type(self) -> str:
        return self._now.type.value

    @property
    def status(self) -> str:
        """`Scheduled`, `Started`, `Completed` or `Canceled`."""
        return self._now.status.value

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of the VMs it interrupts."""
        return self._now.resources

    @property
    def not_before(self) -> datetime | None:
        """The earliest start without an approval; None once it has started."""
        return self._now.not_before

    @property
    def is_announced(self) -> bool:
        """Whether the VMs see it: not if none has read the document, or none is given notice."""
        return self._now.announced

    @property
    def approved_by(self) -> str | None:
        """The VM's name, `test` for the test itself, or `policy`; None if not approved."""
        approval = self._now.approval
        return None if approval is None else approval.by.removeprefix("vm:")

    @property
    def start_cause(self) -> str | None:
        """`approved`, `not_before`, `host_failure`, …; None before it has started."""
        cause = self._now.start_cause
        return None if cause is None else cause.value

    # --- waiting for what the handler does ---

    def wait_approved(self, timeout: float = 5) -> None:
        """Wait for a VM to approve it. Raises WaitTimeoutError, at once if it starts unapproved."""
        self._wait(
            lambda: self.approved_by is not None or self.status != EventStatus.SCHEDULED,
            timeout,
            "has not been approved",
        )
        if self.approved_by is None:
            untold = "" if self.is_announced else f", because it was not announced: {self._untold}"
            raise WaitTimeoutError(f"{self!r} was never approved{untold}; {self._account}")

    def wait_started(self, timeout: float = 5) -> None:
        """Wait until it has started. Raises WaitTimeoutError, at once if it was canceled."""
        self._wait(lambda: self.status != EventStatus.SCHEDULED, timeout, "has not started")
        if self.status == EventStatus.CANCELED:
            raise WaitTimeoutError(f"{self!r} was canceled; {self._account}")

    def wait_gone(self, timeout: float = 5) -> None:
        """Wait until it is over.

        That is minutes after its start by the service's clock, so call `advance` first.
        """
        self._wait(lambda: self.status in _OVER, timeout, "is not over")

    # --- deciding ---

    def approve(self) -> None:
        """Let it start now, as an operator would."""
        approvals = self._server.use_cases.approvals
        self._server.call(approvals.approve_from_outside(EventId(self.id), by=TEST))

    def cancel(self, reason: str = "") -> None:
        """Cancel it. Raises ValueError once it has started."""
        scheduler = self._server.use_cases.scheduler
        self._server.call(scheduler.cancel(EventId(self.id), reason=reason, by=TEST))

    def complete(self) -> None:
        """Complete it. Raises ValueError unless it has started."""
        actuation = self._server.use_cases.actuation
        self._server.call(actuation.complete_by_hand(EventId(self.id), by=TEST))

    @property
    def _now(self) -> model.Event:
        return self._server.ledger.event(EventId(self.id))

    @property
    def _untold(self) -> str:
        """Why the event was not announced, if it was not."""
        name = self.resources[0]
        if self.type == EventType.TERMINATE:
            return f"vm({name!r}, terminate_notice='5m') creates a VM that gets notice"
        return f"VM {name} had never read its document when it was scheduled"

    @property
    def _account(self) -> str:
        return self._server.ledger.account()

    def _wait(self, is_so: Callable[[], bool], timeout: float, missing: str) -> None:
        now = self._server.clock.now()
        still = f"{self!r} {missing} (the clock is at {now:%Y-%m-%d %H:%M:%S})"
        self._server.ledger.wait(is_so, timeout=timeout, otherwise=still)
