"""What is to go wrong, as tests ask for it."""

from typing_extensions import override

from forewarned.core.ids import ResourceName
from forewarned.scenarios.values import times
from forewarned.service import faults as service
from forewarned.service.faults import FaultKind, FaultMethod, FaultRecord
from forewarned.testing._arguments import MistakeError, Span, choose, span_or_none
from forewarned.testing._server_thread import ServerThread

__tracebackhide__ = True


class Fault:
    """One fault that was added."""

    def __init__(self, server: ServerThread, record: FaultRecord) -> None:
        self._server = server
        self._fault = record.fault
        self._used = 0

    @override
    def __repr__(self) -> str:
        return f"<Fault {self._fault.id} {self._fault.kind}, used {times(self.used)}>"

    @property
    def used(self) -> int:
        """How many times it has happened."""
        for record in self._server.do(self._server.use_cases.faults.show):
            if record.fault.id == self._fault.id:
                self._used = record.used
        return self._used

    def remove(self) -> None:
        """Remove the fault. Removing it again changes nothing."""
        count = self.used

        def remove() -> None:
            faults = self._server.use_cases.faults
            if any(record.fault.id == self._fault.id for record in faults.show()):
                faults.remove(self._fault.id)

        self._server.do(remove)
        self._used = count


class Faults:
    """The faults of a service."""

    def __init__(self, server: ServerThread) -> None:
        self._server = server

    def add(
        self,
        what: str | int | None = None,
        /,
        *,
        kind: str | None = None,
        status: int | None = None,
        delay: Span | None = None,
        retry_after: Span | None = None,
        times: int | None = None,
        vm: str | None = None,
        method: str | None = None,
    ) -> Fault:
        """Make something go wrong from now on, `times` times or until it is removed.

        `what` is a kind (`"empty"`, `"reset"`, `"truncated"`, `"stale"`, `"malformed"`,
        `"unknown-fields"`, `"unknown-event"`) or a status (`500`); you can also pass them as
        `kind=` or `status=`. A `delay` works with any kind, or alone; it is in real time. `vm` (a
        name) and `method` (`"GET"`: reads, `"POST"`: approvals) narrow it down. Raises ValueError
        for invalid arguments.
        """
        if isinstance(what, int):
            if status is not None:
                raise ValueError("a status is given twice")
            status = what
        elif what is not None:
            if kind is not None:
                raise ValueError("a kind is given twice")
            kind = what
        usual = FaultKind.DELAY if status is None else FaultKind.STATUS
        wanted = service.Fault(
            kind=usual if kind is None else choose(FaultKind, kind, "a kind of fault"),
            status=status,
            delay=span_or_none(delay),
            retry_after=span_or_none(retry_after),
            times=times,
            vm=None if vm is None else ResourceName(vm),
            method=None if method is None else choose(FaultMethod, method, "a method"),
        )

        def add() -> FaultRecord:
            server = self._server
            if vm is not None and server.documents.directory.by_name(vm) is None:
                raise MistakeError(f"no VM is named {vm!r}")
            return server.use_cases.faults.add(wanted)

        return Fault(self._server, self._server.do(add))

    def clear(self) -> None:
        """Remove every fault."""
        self._server.do(self._server.use_cases.faults.clear)
