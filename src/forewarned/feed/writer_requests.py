"""Carries out what VMs ask for through a poller."""

import logging
from collections.abc import Mapping

from forewarned.core.errors import RefusalError
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.feed.protocol import (
    AboutVm,
    Activate,
    Answer,
    Approve,
    AskAbout,
    AskReadiness,
    Failed,
    FaultTaken,
    Granted,
    PollerRequest,
    ReportReadiness,
    Reports,
    TakeFault,
    Unavailable,
)
from forewarned.feed.refusals import refused
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.requests.watch import SeenRequest
from forewarned.service.use_cases import UseCases

_log = logging.getLogger(__name__)


class WriterRequests:
    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases

    def seen(self, readers: Mapping[ScopeId, ResourceName]) -> None:
        for scope_id, reader in readers.items():
            self._use_cases.activation.seen(scope_id, reader)

    def observed(self, request: SeenRequest) -> None:
        self._use_cases.requests.tell(request)

    async def answer(self, request: PollerRequest) -> Answer:
        """Never raises: the poller that waits always gets a reply."""
        try:
            return await self._grant(request)
        except StoreUnavailableError:
            return Unavailable(request.id)
        except RefusalError as refusal:
            return refused(request.id, refusal)
        except Exception:  # noqa: BLE001  # the VM at the other end is owed an answer all the same
            _log.exception("a request from a poller failed")
            return Failed(request.id)

    async def _grant(self, request: PollerRequest) -> Answer:
        use_cases = self._use_cases
        match request:
            case Approve():
                await use_cases.approvals.approve(
                    request.event_ids, caller=request.caller, address=request.address
                )
            case Activate():
                await use_cases.activation.activate(request.caller, address=request.address)
            case AskAbout():
                return AboutVm(request.id, await use_cases.activation.about(request.name))
            case ReportReadiness():
                reports = await use_cases.readiness.report(
                    request.event_id, request.standing, caller=request.caller
                )
                return Reports(request.id, list(reports))
            case AskReadiness():
                reports = await use_cases.readiness.reports(request.event_id, caller=request.caller)
                return Reports(request.id, list(reports))
            case TakeFault():
                fault = await use_cases.faults.take(request.vm, request.method)
                return FaultTaken(request.id, fault)
        return Granted(request.id)
