"""Readiness through the Forewarned server that the events come from.

Azure's metadata service has nothing like it, so the agent uses it only if its file says so. The
server knows which VM is calling, and forgets the reports of an event
when the event is over.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import quote

import msgspec
from typing_extensions import override

from forewarned.agent.readiness.ports import Readiness, ReadinessError, ReadinessReport, Standing
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Answer, Request, send

_PATH: Final = "/metadata/forewarned/readiness"
_PATIENCE: Final = 5.0
_OK: Final = 200
_WRONG_METHOD: Final = 405
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_BODY: Final = 1024 * 1024
_LONGEST_QUOTE: Final = 200


_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class _Heard(msgspec.Struct, frozen=True, kw_only=True):
    """When each VM's agent was last heard, by its standing."""

    preparing: dict[str, _Instant]
    ready: dict[str, _Instant]
    refuses: dict[str, _Instant]


class ServerReports(Readiness):
    def __init__(self, endpoint: Callable[[], str | None]) -> None:
        """`endpoint` is where the VM's metadata is; None while that is not known."""
        self._endpoint = endpoint

    @override
    async def report(self, event_id: str, me: str, report: ReadinessReport) -> None:
        _check(await self._ask("PUT", f"{_of(event_id)}&standing={report.standing}"))

    @override
    async def reports(self, event_id: str) -> Mapping[str, ReadinessReport]:
        answer = _check(await self._ask("GET", _of(event_id)))
        try:
            heard = msgspec.json.decode(answer.body, type=_Heard)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ReadinessError(
                f"the server's response is not a readiness report: {error}"
            ) from error
        return {
            name: ReadinessReport(standing=standing, beat=_beat(instant))
            for standing, instants in (
                (Standing.PREPARING, heard.preparing),
                (Standing.READY, heard.ready),
                (Standing.REFUSES, heard.refuses),
            )
            for name, instant in instants.items()
        }

    @override
    async def forget(self, event_id: str, me: str) -> None:
        """The server has forgotten it already."""

    async def check(self) -> None:
        """Raises ReadinessError if the service does not offer this. Reports nothing."""
        answer = await self._ask("OPTIONS", _PATH)
        # A service that has the path refuses the method; others answer 404.
        if answer.status != _WRONG_METHOD:
            raise ReadinessError(
                f"{self._endpoint()} has no readiness endpoint (status {answer.status}): only "
                "Forewarned has one, Azure does not"
            )

    async def _ask(self, method: str, target: str) -> Answer:
        endpoint = self._endpoint()
        if endpoint is None:
            raise ReadinessError("the VM's metadata has not been found yet")
        request = Request(method=method, url=endpoint + target, headers={"Metadata": "true"})
        try:
            async with asyncio.timeout(_PATIENCE):
                return await send(request, longest_body=_LONGEST_BODY)
        except TimeoutError as error:
            raise ReadinessError(f"{endpoint} did not answer in time") from error
        except TargetError as error:
            raise ReadinessError(str(error)) from error


def _of(event_id: str) -> str:
    return f"{_PATH}?event={quote(event_id, safe='')}"


def _check(answer: Answer) -> Answer:
    if answer.status != _OK:
        said = answer.body.decode(errors="replace")[:_LONGEST_QUOTE]
        raise ReadinessError(f"the server responded with {answer.status}: {said}")
    return answer


def _beat(instant: datetime) -> int:
    # Any number will do that is another one for another instant.
    return (instant - _EPOCH) // timedelta(microseconds=1)
