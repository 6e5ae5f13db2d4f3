"""Answers what host drains want to know of a platform: which VMs can be moved, which are where.

VMs are only looked at, and hosts are cordoned as the server has them. To do either twice changes
nothing, so questions are not claimed.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

from forewarned.actuators.actuator import Equipped
from forewarned.actuators.desk import DeskUnavailableError
from forewarned.actuators.driver import DriverError, Effect, Verdict, Vm, moves_only
from forewarned.core.ids import same_name
from forewarned.core.model import EventType

_log = logging.getLogger(__name__)

_BETWEEN_LOOKS: Final = 5.0
"""Seconds: an operator who plans a drain waits for this."""
_LONGEST_SURVEY: Final = 30.0
_AT_ONCE: Final = 8
"""Questions that are looked into: a host may have hundreds of VMs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    type: EventType
    host: str
    """The one that is drained."""
    vm: Vm | None
    """Whether this VM can be moved; None to ask which VMs are on the host."""
    target: str | None = None
    """Where it would have to be moved; None if any host will do that is not drained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    questions: tuple[Question, ...]
    cordoned: frozenset[str]
    """The hosts that no VM may be moved to now."""


class QuestionDesk(Protocol):
    """All of its methods may raise DeskUnavailableError."""

    async def questions(self) -> Questions: ...
    async def answer_survey(self, host: str, vm: Vm, verdict: Verdict) -> None: ...
    async def answer_listing(
        self, host: str, vms: Sequence[str] | None, *, error: str = ""
    ) -> None:
        """None: this platform can't be asked, or could not this time, for that error."""


@runtime_checkable
class HostLister(Protocol):
    """A driver that can list a host."""

    async def vms_on(self, host: str) -> list[str]:
        """The names of all VMs that are there. Raises DriverError."""


@runtime_checkable
class HostCordon(Protocol):
    """A driver whose platform can be told to put no VM on a host."""

    async def cordon(self, hosts: Collection[str]) -> Mapping[str, str]:
        """Have the platform put no VM on these hosts, and lift what was done so for others.

        Names that the platform does not have are ignored. What someone else has closed stays
        closed. Called again with the same hosts, it changes nothing. Returns the hosts that could
        not be changed, each with the cause. Raises DriverError if none could be.
        """


class Surveyor:
    def __init__(self, name: str, equipped: Equipped, desk: QuestionDesk) -> None:
        self._name = name
        self._driver = equipped.driver
        self._procedures = equipped.procedures
        self._desk = desk
        self._is_dry_run = equipped.dry_run
        self._cordoned: frozenset[str] | None = None
        """As the platform was last told; None before that, and after a failure."""

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.answer_all()
            except DeskUnavailableError as error:
                # The claims of tasks fail as well, and say so.
                why = {"actuator": self._name, "why": str(error)}
                _log.debug("can't tell the server which VMs can be moved, for now", extra=why)
            try:
                async with asyncio.timeout(_BETWEEN_LOOKS):
                    await stop.wait()
            except TimeoutError:
                continue

    async def answer_all(self) -> None:
        asked = await self._desk.questions()
        # Before a plan is answered for, so that nothing comes to a host while it is being emptied.
        failures = await self._cordon(asked.cordoned)
        places = asyncio.Semaphore(_AT_ONCE)

        async def answer(question: Question) -> None:
            async with places:
                await self._answer(question, asked.cordoned, failures)

        # All are tried, even where the server could not be told of one.
        for error in await asyncio.gather(*map(answer, asked.questions), return_exceptions=True):
            if error is not None:
                raise error

    async def _answer(
        self, question: Question, cordoned: frozenset[str], failures: Mapping[str, str]
    ) -> None:
        host = question.host
        if question.vm is None:
            await self._list(host)
            return
        failure = next((why for failed, why in failures.items() if same_name(failed, host)), None)
        if failure is not None and host in cordoned:
            verdict = Verdict(possible=False, reason=f"{host} can't be cordoned: {failure}")
        else:
            verdict = await self._verdict(question, question.vm, cordoned)
        await self._desk.answer_survey(host, question.vm, verdict)

    async def _cordon(self, hosts: frozenset[str]) -> Mapping[str, str]:
        """Returns the hosts that the platform can't be told of, each with the cause."""
        if self._is_dry_run or hosts == self._cordoned:
            return {}
        if not isinstance(self._driver, HostCordon):
            return {}
        self._cordoned = None
        try:
            async with asyncio.timeout(_LONGEST_SURVEY):
                failures = await self._driver.cordon(hosts)
        except (DriverError, TimeoutError) as error:
            failures = dict.fromkeys(hosts, str(error) or "the platform does not answer")
        for host, failure in failures.items():
            why = {"actuator": self._name, "host": host, "why": failure}
            _log.warning("can't tell the platform whether a host is drained", extra=why)
        if not failures:
            self._cordoned = hosts
        return failures

    async def _verdict(self, question: Question, vm: Vm, cordoned: frozenset[str]) -> Verdict:
        type_ = question.type
        procedure = self._procedures.get(type_)
        if procedure is None:
            reason = f"actuator {self._name!r} has no action for {type_}"
            return Verdict(possible=False, reason=reason)
        if procedure.action.effect is not Effect.MOVES:
            reason = f"{str(procedure.action.do)!r} for {type_} doesn't move VMs to another host"
            return Verdict(possible=False, reason=reason)
        action = moves_only(procedure.action)
        action = replace(action, cordoned=cordoned, target=question.target)
        try:
            async with asyncio.timeout(_LONGEST_SURVEY):
                return await self._driver.survey(action, vm)
        except (DriverError, TimeoutError) as error:
            return Verdict(possible=False, reason=str(error) or "the platform does not answer")

    async def _list(self, host: str) -> None:
        if not isinstance(self._driver, HostLister):
            await self._desk.answer_listing(host, None)
            return
        try:
            async with asyncio.timeout(_LONGEST_SURVEY):
                found = await self._driver.vms_on(host)
        except (DriverError, TimeoutError) as error:
            # The drain says so, and waits.
            failure = str(error) or "the platform does not answer"
            await self._desk.answer_listing(host, None, error=failure)
            return
        await self._desk.answer_listing(host, found)
