"""How far the agents of an event are, as a poller's metadata listener asks the writer for it."""

from forewarned.core.ids import EventId
from forewarned.feed.protocol import AskReadiness, ReportReadiness, Reports
from forewarned.feed.remote import RemoteWriter
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import Caller


class RemoteReadiness:
    def __init__(self, asking: RemoteWriter) -> None:
        self._asking = asking

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]:
        answer = await self._asking.ask(
            lambda number: ReportReadiness(number, event_id, standing, caller), Reports
        )
        return tuple(answer.reports)

    async def reports(self, event_id: EventId, *, caller: Caller) -> tuple[ReadinessReport, ...]:
        answer = await self._asking.ask(
            lambda number: AskReadiness(number, event_id, caller), Reports
        )
        return tuple(answer.reports)
