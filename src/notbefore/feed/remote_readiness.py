"""How far the agents of an event are, as a poller's metadata listener asks the writer for it."""

from notbefore.core.ids import EventId
from notbefore.feed.asking import Asking
from notbefore.feed.messages import AskReadiness, ReportReadiness, Reports
from notbefore.service.ports import Caller
from notbefore.service.readiness import Report, Standing


class RemoteReadiness:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[Report, ...]:
        answer = await self._asking.ask(
            lambda number: ReportReadiness(number, event_id, standing, caller), Reports
        )
        return tuple(answer.reports)

    async def reports(self, event_id: EventId, *, caller: Caller) -> tuple[Report, ...]:
        answer = await self._asking.ask(
            lambda number: AskReadiness(number, event_id, caller), Reports
        )
        return tuple(answer.reports)
