"""Plans and events for tests of the agent, and one life of an event played by the rules."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

from forewarned.agent.journal import (
    AnyFact,
    Approved,
    Began,
    Ended,
    Finished,
    Planned,
    Reported,
    advance,
)
from forewarned.agent.model import (
    Approve,
    HookOutcome,
    Leader,
    Plan,
    Progress,
    Sighting,
    Step,
    Turn,
    Verdict,
)
from forewarned.agent.plan import ApproveNow, Finish, ReportReady, Run, Settle, Wait, next_action
from tests.builders import MINUTE, NOON

ME: Final = "web_0"
EVENT: Final = "0000000A-0000-4000-8000-000000000000"


def a_step(
    name: str = "drain",
    *,
    timeout: timedelta = MINUTE,
    required: bool = True,
    expected: timedelta | None = None,
    cut: int = 0,
    has_undo: bool = False,
) -> Step:
    return Step(
        name=name,
        timeout=timeout,
        required=required,
        expected=expected,
        cut=cut,
        has_undo=has_undo,
    )


def a_plan(
    *prepare: Step,
    recover: tuple[Step, ...] = (),
    approve: Approve = Approve.WHEN_READY,
    leader: Leader = Leader.EACH,
) -> Plan:
    return Plan(rule="any", prepare=prepare, recover=recover, approve=approve, leader=leader)


def a_sighting(
    *,
    resources: tuple[str, ...] = (ME,),
    not_before: datetime | None = NOON + 15 * MINUTE,
    is_started: bool = False,
) -> Sighting:
    return Sighting(
        event_id=EVENT,
        type="Reboot",
        source="Platform",
        resources=resources,
        not_before=not_before,
        is_started=is_started,
    )


class Journey:
    """Plays an event: does what the plan says, and keeps what a journal would."""

    def __init__(
        self,
        plan: Plan,
        sighting: Sighting | None = None,
        *,
        verdict: Callable[[Turn], Verdict] = lambda _: Verdict.DONE,
    ) -> None:
        self.facts: list[AnyFact] = []
        self.ran: list[Turn] = []
        self.limits: dict[Turn, timedelta] = {}
        self.approvals = 0
        self._verdict = verdict
        self._progress: Progress | None = None
        self.tell(Planned(event_id=EVENT, at=NOON, sighting=sighting or a_sighting(), plan=plan))

    @property
    def progress(self) -> Progress:
        assert self._progress is not None
        return self._progress

    def tell(self, fact: AnyFact) -> None:
        self.facts.append(fact)
        self._progress = advance(self._progress, fact)

    def go(
        self, *, now: datetime = NOON, ready: Collection[str] = (), dies_after: int | None = None
    ) -> Wait | None:
        """Until there is nothing to do; None once finished.

        With `dies_after` the agent dies after so many facts, perhaps in the middle of a hook.
        """
        last = None if dies_after is None else len(self.facts) + dies_after
        while last is None or len(self.facts) < last:
            action = next_action(self.progress, me=ME, now=now, ready=ready)
            match action:
                case None | Wait():
                    return action
                case Run():
                    self.tell(Began(event_id=EVENT, at=now, turn=action.turn))
                    self.ran.append(action.turn)
                    self.limits[action.turn] = action.limit
                    if last is not None and len(self.facts) >= last:
                        break
                    outcome = HookOutcome(verdict=self._verdict(action.turn))
                    self.tell(Ended(event_id=EVENT, at=now, turn=action.turn, outcome=outcome))
                case Settle():
                    self.tell(
                        Ended(event_id=EVENT, at=now, turn=action.turn, outcome=action.outcome)
                    )
                case ReportReady():
                    self.tell(Reported(event_id=EVENT, at=now))
                case ApproveNow():
                    self.approvals += 1
                    self.tell(Approved(event_id=EVENT, at=now))
                case Finish():
                    self.tell(Finished(event_id=EVENT, at=now))
        return None
