"""What VMs ask of the writer by way of a poller."""

import logging

from forewarned.core.errors import RefusalError
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
    ReportReadiness,
    Reports,
    Request,
    TakeFault,
    Unavailable,
)
from forewarned.feed.refusals import refused
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.faults import FaultSource
from forewarned.service.ports import Approver, Reader
from forewarned.service.readiness import Readiness

_log = logging.getLogger(__name__)


class WriterRequests:
    def __init__(
        self,
        approver: Approver,
        reader: Reader,
        readiness: Readiness,
        faults: FaultSource | None = None,
    ) -> None:
        self._approver = approver
        self._reader = reader
        self._readiness = readiness
        self._faults = faults

    async def answer(self, request: Request) -> Answer:
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

    async def _grant(self, request: Request) -> Answer:
        match request:
            case Approve():
                await self._approver.approve(
                    request.event_ids, caller=request.caller, address=request.address
                )
            case Activate():
                await self._reader.activate(request.caller, address=request.address)
            case AskAbout():
                return AboutVm(request.id, await self._reader.about(request.name))
            case ReportReadiness():
                reports = await self._readiness.report(
                    request.event_id, request.standing, caller=request.caller
                )
                return Reports(request.id, list(reports))
            case AskReadiness():
                reports = await self._readiness.reports(request.event_id, caller=request.caller)
                return Reports(request.id, list(reports))
            case TakeFault():
                if self._faults is None:
                    return FaultTaken(request.id, None)
                return FaultTaken(request.id, await self._faults.take(request.vm, request.method))
        return Granted(request.id)
