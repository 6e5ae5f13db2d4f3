"""What actuators and operators may say of tasks, in any order, late and twice."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from forewarned.core.errors import (
    RefusalError,
    TaskLostError,
    TaskStateError,
    UnknownTaskError,
)
from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import Actor, ResourceState
from forewarned.core.tasks import LEASE, Failure
from forewarned.service.lifecycle.tasks import Seen, TaskRef, Tasks
from tests.builders import OPERATOR
from tests.stateful.fleet import VMS
from tests.stateful.observer import Observer

ACTUATOR: Final = Actor(name="rack1")
UNHARMED: Final = Failure(error="no room", unharmed=True, retry=False)
LATER: Final = Failure(error="busy", unharmed=True, retry=True)
DOWN: Final = Failure(error="no answer", unharmed=False, retry=False)
MOVED: Final = Seen('{"host":"rack-9"}', HostName("rack-9"))

Report = Callable[[Tasks, TaskRef], Coroutine[Any, Any, object]]

REPORTS: Final[dict[str, Report]] = {
    "renew": lambda tasks, ref: tasks.renew(ref),
    "begin": lambda tasks, ref: tasks.begin(ref, Seen("{}"), by=ACTUATOR),
    "finish": lambda tasks, ref: tasks.finish(ref, Seen("{}"), by=ACTUATOR),
    "move": lambda tasks, ref: tasks.finish(ref, MOVED, by=ACTUATOR),
    "fail": lambda tasks, ref: tasks.fail(ref, UNHARMED, Seen(), by=ACTUATOR),
    "retry later": lambda tasks, ref: tasks.fail(ref, LATER, Seen(), by=ACTUATOR),
    "stall": lambda tasks, ref: tasks.fail(ref, DOWN, Seen(), by=ACTUATOR),
}


class TaskRules(RuleBasedStateMachine):
    observer: Observer

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[TaskRef] = []

    @property
    def tasks(self) -> Tasks:
        return self.observer.stack.use_cases.tasks

    @property
    def is_simulated(self) -> bool:
        return self.observer.stack.is_simulated

    @precondition(lambda self: not self.is_simulated and self.observer.oracle.under_way())
    @rule(
        limit=st.integers(1, 4),
        is_late=st.booleans(),
        said=st.lists(st.sampled_from(sorted(REPORTS)), max_size=4),
    )
    def claim(self, limit: int, said: list[str], *, is_late: bool) -> None:
        """I22: no two claims of a task are the same attempt."""
        if is_late:
            self.observer.step(LEASE)
        found = self.observer.expect(self.tasks.claim("rack1", holder="one", limit=limit))

        assert isinstance(found, list)
        for claim in found:
            ref = TaskRef(claim.task.event_id, claim.task.vm, claim.task.attempt)
            assert ref.attempt > self._newest(ref), "I22: an attempt was given twice"
            life = self.observer.oracle.lives[ref.event_id]
            assert life.is_under_way, f"I22: {ref} of an event that is {life.status}"
            self.claims.append(ref)
        for ref in self.claims[len(self.claims) - len(found) :]:
            for what in said:
                self._report(ref, what)

    @precondition(lambda self: self.claims)
    @rule(pick=st.integers(0, 9), what=st.sampled_from(sorted(REPORTS)))
    def report_on_a_task(self, pick: int, what: str) -> None:
        self._report(self.claims[-1 - pick % len(self.claims)], what)

    def _report(self, ref: TaskRef, what: str) -> None:
        """I22: only the newest attempt is heard, and only while its event is under way."""
        life = self.observer.oracle.lives[ref.event_id]
        is_outdated = ref.attempt < self._newest(ref) or not life.is_under_way

        answer, _ = self.observer.attempt(REPORTS[what](self.tasks, ref))

        if isinstance(answer, RefusalError):
            assert isinstance(answer, TaskLostError), f"I22: {answer!r}"
        else:
            assert not is_outdated, f"I22: {ref} was heard"
        if what == "begin" and not isinstance(answer, RefusalError):
            vm = self.observer.oracle.scopes[life.scope_id].scope.resources[ref.vm]
            assert vm.state is not ResourceState.RUNNING, "I22: it begins, and the VM runs"

    @precondition(lambda self: not self.is_simulated and self.observer.oracle.under_way())
    @rule(pick=st.integers(0, 9), name=st.sampled_from(sorted(VMS)), is_skipped=st.booleans())
    def settle_a_task(self, pick: int, name: str, *, is_skipped: bool) -> None:
        lives = self.observer.oracle.under_way()
        life = lives[-1 - pick % len(lives)]
        order = self.tasks.skip if is_skipped else self.tasks.retry

        answer, _ = self.observer.attempt(
            order(life.event.id, ResourceName(life.event.resources[0]), by=OPERATOR)
        )
        other, _ = self.observer.attempt(order(life.event.id, ResourceName(name), by=OPERATOR))

        for each in (answer, other):
            if isinstance(each, RefusalError):
                assert isinstance(each, TaskStateError | UnknownTaskError), repr(each)

    def _newest(self, ref: TaskRef) -> int:
        same = [c.attempt for c in self.claims if c[:2] == ref[:2]]
        return max(same, default=0)
