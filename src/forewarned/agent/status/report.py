"""The agent's status, from its journal and from what runs now."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarned import __version__
from forewarned.agent.event_loop import EventLoop
from forewarned.agent.event_worker import EventWorker, WorkerContext
from forewarned.agent.hooks.ports import Hook
from forewarned.agent.model import Phase, Progress, Step, Turn, Verdict
from forewarned.agent.plan import is_prepared, not_put_back, time_left, turns, why_not_approved
from forewarned.agent.status.wire import AgentStatus, EventStatus, Stage, StepStatus
from forewarned.client import Contact
from forewarned.config.durations import format_duration


def stage(progress: Progress) -> Stage:
    if progress.is_finished:
        return Stage.FINISHED
    if progress.is_gone:
        return Stage.RESTORING
    if progress.sighting.is_started:
        return Stage.STARTED
    steps = progress.plan.prepare
    is_over = all(Turn(Phase.PREPARE, step.name) in progress.outcomes for step in steps)
    if not is_over:
        return Stage.PREPARING
    return Stage.READY if is_prepared(progress) else Stage.NOT_PREPARED


def keeps_from_work(progress: Progress) -> bool:
    """Whether the VM is out of use: from its first prepare hook until all are undone."""
    plan = progress.plan
    if progress.is_finished or not plan.prepare:
        return False
    if not progress.is_gone:
        return stage(progress) is Stage.PREPARING or any(
            _has_run(progress, step) for step in plan.prepare
        )
    return any(
        step.has_undo
        and _has_run(progress, step)
        and Turn(Phase.UNDO, step.name) not in progress.outcomes
        for step in plan.prepare
    )


def _has_run(progress: Progress, step: Step) -> bool:
    turn = Turn(Phase.PREPARE, step.name)
    outcome = progress.outcomes.get(turn)
    if outcome is None:
        return turn in progress.begun
    return outcome.verdict is not Verdict.SKIPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """Asks; changes nothing."""

    runner: EventLoop
    context: WorkerContext
    contact: Callable[[], Contact]
    clock: Callable[[], datetime]
    """This VM's clock; event workers go by the service's."""
    started_at: datetime
    boot: str

    def status(self) -> AgentStatus:
        context, contact = self.context, self.contact()
        why = trouble = self.runner.why_not_healthy()
        busy = [p for p in context.journal.events.values() if keeps_from_work(p)]
        if not why and busy:
            why = f"event {busy[0].event_id} ({busy[0].sighting.type}): {stage(busy[0])}"
        events = tuple(self._event(key, each) for key, each in context.journal.events.items())
        return AgentStatus(
            now=self.clock(),
            version=__version__,
            resource=context.me,
            endpoint=contact.endpoint or "",
            started_at=self.started_at,
            healthy=not trouble,
            ready=not busy,
            why=why,
            service_now=None if contact.at is None else context.now(),
            document_at=contact.at,
            document_age=None if contact.age is None else format_duration(_whole(contact.age)),
            incarnation=contact.incarnation,
            warnings=tuple(warning for event in events for warning in _warnings(event)),
            events=events,
        )

    def _event(self, key: str, progress: Progress) -> EventStatus:
        worker = self.runner.workers.get(key)
        sighting, plan = progress.sighting, progress.plan
        left = None if progress.is_gone else time_left(sighting, self.context.now())
        at = stage(progress)
        is_decided = at in {Stage.READY, Stage.NOT_PREPARED} and not progress.approved
        return EventStatus(
            event_id=sighting.event_id,
            type=sighting.type,
            source=sighting.source,
            resources=sighting.resources,
            stage=at,
            rule=plan.rule,
            waits_for=_waits_for(progress, worker),
            description=sighting.description,
            duration=None if sighting.duration is None else format_duration(sighting.duration),
            not_before=sighting.not_before,
            time_left=None if left is None else format_duration(_whole(left)),
            approve=str(plan.approve),
            leader=str(plan.leader),
            approved=progress.approved,
            not_approved_because=why_not_approved(progress) if is_decided else None,
            came_back=bool(self.boot and progress.boot and self.boot != progress.boot),
            not_put_back=not_put_back(progress),
            reappeared=key in self.runner.reappeared,
            steps=tuple(_steps(progress, worker, self.context)),
        )


def _warnings(event: EventStatus) -> Iterator[str]:
    """What an operator has to do something about."""
    for step in event.not_put_back:
        yield f"event {event.event_id} is over, but step {step!r} could not be undone"
    if event.reappeared:
        yield f"event {event.event_id} is shown again after it was gone: the agent ignores it"


def _waits_for(progress: Progress, worker: EventWorker | None) -> str:
    if progress.is_finished:
        return ""
    if worker is None:
        return "the first document since the agent started"
    return worker.waits_for


def _steps(
    progress: Progress, worker: EventWorker | None, context: WorkerContext
) -> Iterator[StepStatus]:
    hooks = context.hooks
    running = None if worker is None else worker.running
    for turn, step in turns(progress.plan):
        took: str | None = None
        limit: str | None = None
        outcome = progress.outcomes.get(turn)
        if outcome is not None:
            state, detail = str(outcome.verdict), outcome.detail
            # Journals of before have a zero where nothing is known.
            took = format_duration(_rounded(outcome.took)) if outcome.took else None
        elif running is not None and running.turn == turn:
            state, detail = "running", _described(hooks, turn)
            took = format_duration(_rounded(context.monotonic() - running.began))
            limit = format_duration(running.limit)
        else:
            # Begun and not running: the agent was ended meanwhile, and is about to say so.
            state, detail = "to come", _described(hooks, turn)
        yield StepStatus(
            phase=str(turn.phase),
            step=turn.step,
            state=state,
            detail=detail,
            took=took,
            limit=limit,
            required=step.required,
        )


def _described(hooks: Mapping[str, Hook], turn: Turn) -> str:
    hook = hooks.get(turn.step)
    return "no longer in the agent's file" if hook is None else hook.describe(turn.phase)


def _rounded(span: timedelta) -> timedelta:
    """As precise as people need, and never zero for what took some time."""
    if span >= timedelta(seconds=1):
        return _whole(span)
    if span >= timedelta(milliseconds=1):
        return timedelta(milliseconds=round(span.total_seconds() * 1000))
    return span


def _whole(span: timedelta) -> timedelta:
    return timedelta(seconds=round(span.total_seconds()))
