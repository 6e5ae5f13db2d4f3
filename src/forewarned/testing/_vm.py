"""A VM: where its handler reads its document, and what happens to it."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import EventSource, EventType, Priority
from forewarned.metadata import wire
from forewarned.scenarios import values
from forewarned.service.azure import inventory
from forewarned.service.azure.actions import Action, operate
from forewarned.service.events.api_versions import EVENT_VERSIONS
from forewarned.service.events.schedule import EventOrder
from forewarned.service.ports import Transaction
from forewarned.service.records import EventRecord
from forewarned.testing._arguments import MistakeError, Span, choose, span_or_none
from forewarned.testing._event import Event
from forewarned.testing._ledger import Request
from forewarned.testing._server_thread import TEST, ServerThread

if TYPE_CHECKING:
    import pytest

__tracebackhide__ = True

ENDPOINT_VARIABLE: Final = "FOREWARNED_ENDPOINT"


class Vm:
    """One VM. Hand its `endpoint` to the code under test."""

    def __init__(self, server: ServerThread, name: str) -> None:
        self._server = server
        self.name = name
        self.endpoint = f"{server.endpoint}/vm/{name}"
        """What comes before `/metadata/scheduledevents` in its requests."""

    @override
    def __repr__(self) -> str:
        return f"<Vm {self.name} at {self.endpoint}>"

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables with which `forewarned.client` in another process finds the endpoint."""
        return {ENDPOINT_VARIABLE: self.endpoint}

    def set_environment(self, monkeypatch: "pytest.MonkeyPatch") -> None:
        """Let `forewarned.client` in this process find the endpoint, until the test ends."""
        monkeypatch.setenv(ENDPOINT_VARIABLE, self.endpoint)

    def schedule(
        self,
        type: str,
        *,
        notice: Span | None = None,
        duration: Span | None = None,
        description: str | None = None,
        source: str | None = None,
    ) -> Event:
        """Schedule a Freeze, Reboot, Redeploy, Preempt (of a Spot VM) or Terminate.

        `notice` is the time to NotBefore, by default what Azure gives. `duration` is the impact
        shown in the document. The source is `User` for a Terminate, otherwise `Platform`. Raises
        ValueError for invalid arguments.

        Without a `notice`, a Terminate does what deleting the VM does on Azure: a VM that was made
        with a `terminate_notice` sees the event and is deleted after its notice; any other VM is
        gone at once.
        """
        kind = choose(EventType, type, "a type of event")
        if kind is EventType.TERMINATE and notice is None:
            deletion = self._server.call(self._delete_untold())
            if deletion is not None:
                event = Event(self._server, deletion)
                event.wait_gone()
                return event
        usual = EventSource.USER if kind is EventType.TERMINATE else EventSource.PLATFORM
        order = EventOrder(
            type=kind,
            resources=(ResourceName(self.name),),
            source=usual if source is None else choose(EventSource, source, "a source"),
            notice=span_or_none(notice),
            short_notice=notice is not None,
            duration=span_or_none(duration),
            description=description,
        )
        scheduler = self._server.use_cases.scheduler
        [record] = self._server.call(scheduler.schedule(order, by=TEST))
        return Event(self._server, record.event.id)

    async def _delete_untold(self) -> EventId | None:
        """Delete it as the service does where its model asks for no notice; None where it does."""
        context = self._server.use_cases.new_context(TEST)

        def work(tx: Transaction) -> EventId | None:
            found = inventory.by_name(tx, self.name)
            if found is None:
                raise UnknownResourceError(ResourceName(self.name))
            vm = found.resource
            if vm.terminate_notice is not None and vm.priority is not Priority.SPOT:
                return None
            [event_id] = operate(tx, [found], Action.DELETE, context=context)
            return event_id

        return await self._server.use_cases.engine.decide(work)

    def fail_host(self) -> Event:
        """Make its host fail: the VM gets an event that is Started from the beginning."""

        async def fail() -> list[EventRecord]:
            use_cases = self._server.use_cases
            about = await use_cases.activation.about(ResourceName(self.name))
            if about is None:
                raise MistakeError(f"VM {self.name!r} is gone")
            return await use_cases.scheduler.fail_host(about.resource.host, by=TEST)

        [record] = self._server.call(fail())
        return Event(self._server, record.event.id)

    def document(self, api_version: str = "2020-07-01") -> dict[str, Any]:
        """Return its current document, decoded from JSON. Does not count as a request of the VM.

        Raises ValueError for an unknown api-version.
        """
        if api_version not in EVENT_VERSIONS:
            known = ", ".join(EVENT_VERSIONS)
            raise ValueError(f"{api_version!r} is not an api-version: expected one of {known}")

        def look() -> bytes:
            documents = self._server.documents
            caller = documents.directory.by_name(self.name)
            page = None if caller is None else documents.board.page(caller.scope_id)
            if page is None:
                raise MistakeError(f"VM {self.name!r} is gone")
            return wire.encode(page.document, EVENT_VERSIONS[api_version])

        found: dict[str, Any] = json.loads(self._server.do(look))
        return found

    @property
    def requests(self) -> list[Request]:
        """Every request it has made so far."""
        return self._server.ledger.requests(self.name)

    @property
    def polls(self) -> int:
        """How many times it has read its document."""
        return sum(request.what == "events" for request in self.requests)

    @property
    def approvals(self) -> int:
        """How many approvals it has sent, accepted or not."""
        return sum(request.what == "approve" for request in self.requests)

    def wait_polled(self, times: int = 1, timeout: float = 5) -> None:
        """Wait until it has read its document this many times in all. Raises WaitTimeoutError."""
        self._server.ledger.wait(
            lambda: self.polls >= times,
            timeout=timeout,
            otherwise=f"VM {self.name} has not read its document {values.times(times)}",
        )
