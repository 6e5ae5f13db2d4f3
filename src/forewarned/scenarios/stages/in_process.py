"""A stage in this process: an emulator of its own for each scenario."""

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Final, Self, assert_never

from forewarned.core.errors import RefusalError
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import Actor
from forewarned.core.transitions import EventTransition
from forewarned.metadata.http.responses import render_as_azure
from forewarned.runtime.delivery.player import read_timeline
from forewarned.runtime.delivery.timeline import event_ids_of
from forewarned.runtime.listeners.sockets import StartError
from forewarned.runtime.settings import Settings
from forewarned.scenarios import steps
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.observations import EventMoved, EventState
from forewarned.scenarios.ports import StageError, Tell
from forewarned.scenarios.stages import fleet
from forewarned.scenarios.stages.emulator import Emulator, Listen
from forewarned.scenarios.stages.requests import request_of
from forewarned.service.azure import inventory
from forewarned.service.azure.actions import Action, operate
from forewarned.service.events import schedule
from forewarned.service.ports import Transaction
from forewarned.service.records import Commit, EventRecord
from forewarned.service.requests.watch import SeenRequest

SCENARIO: Final = Actor(name="scenario")
"""Who history says it was."""


class EmulatorStage:
    """Serves from `set_up` on, until the block ends."""

    def __init__(self, *, listen: Listen | None = None, url: str | None = None) -> None:
        """`url` is what the handler calls the listener, where that differs from its address."""
        self._listen = listen
        self._url = url
        self._emulator: Emulator | None = None
        self._stack = AsyncExitStack()
        self._scenario: Scenario | None = None
        self._seen: dict[EventId, EventMoved] = {}
        self._tell: Tell = lambda _: None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def now(self) -> datetime:
        return self._opened.clock.now()

    @property
    def endpoint(self) -> str:
        return self._url or self._opened.endpoint

    async def set_up(self, scenario: Scenario, tell: Tell) -> None:
        service = scenario.service
        self._scenario, self._tell = scenario, tell
        emulator = Emulator(
            default_vm=scenario.handler_vm,
            observe=self._observe,
            hear=self._hear,
            settings=Settings(
                rate_limit=service.rate_limit,
                first_call_delay=service.first_call_delay,
                reset_incarnation=service.reset_incarnation,
            ),
            speed=service.clock_speed,
            listen=self._listen,
            render=render_as_azure,
        )
        try:
            self._emulator = await self._stack.enter_async_context(emulator)
            for vm in scenario.fleet:
                await fleet.make(emulator.use_cases, vm, by=SCENARIO)
        except OSError as error:
            raise StageError(f"the service can't listen: {error.strerror or error}") from error
        except RefusalError as error:
            raise StageError(str(error)) from error

    async def carry_out(
        self, step: steps.ServiceStep, events: Mapping[str, tuple[EventId, ...]]
    ) -> tuple[EventId, ...]:
        try:
            match step:
                case steps.Schedule() | steps.Fail() | steps.Maintain() | steps.Terminate():
                    return await self._make_events(step)
                case steps.Replay():
                    return self._replay(step)
                case steps.Approve() | steps.Cancel() | steps.Complete():
                    for event_id in events[step.event]:
                        await self._move_event(step, event_id)
                case steps.Advance():
                    await self._opened.use_cases.clock_control.step(step.by)
                case steps.RunClock():
                    await self._opened.use_cases.clock_control.run(step.speed)
                case steps.AddFault():
                    self._opened.use_cases.faults.add(step.fault)
                case steps.ClearFaults():
                    self._opened.use_cases.faults.clear()
                case steps.RestartService():
                    await self._opened.restart(step.down)
                case _:
                    assert_never(step)
        except RefusalError as error:
            raise StageError(str(error)) from error
        return ()

    # --- events ---

    async def _make_events(self, step: steps.EventStep) -> tuple[EventId, ...]:
        scheduler = self._opened.use_cases.scheduler
        match step:
            case steps.Schedule():
                order = event_order(step, self._vms(step.vms))
                return self._visible(await scheduler.schedule(order, by=SCENARIO))
            case steps.Fail():
                host = await self._host(step.vm)
                return self._visible(await scheduler.fail_host(host, by=SCENARIO))
            case steps.Maintain():
                host = await self._host(step.vm)
                work = work_order(step)
                return self._visible(await scheduler.maintain_host(host, work, by=SCENARIO))
            case steps.Terminate():
                return await self._delete(self._vms(step.vms))
            case _:
                assert_never(step)

    async def _move_event(
        self, step: steps.Approve | steps.Cancel | steps.Complete, event_id: EventId
    ) -> None:
        use_cases = self._opened.use_cases
        match step:
            case steps.Approve():
                by = SCENARIO
                if step.by is not None:
                    name = ResourceName(step.by)
                    by = Actor(name=f"vm:{name}", address="127.0.0.1", resource=name)
                await use_cases.approvals.approve_from_outside(event_id, by=by)
            case steps.Cancel():
                await use_cases.scheduler.cancel(event_id, reason="", by=SCENARIO)
            case steps.Complete():
                await use_cases.actuation.complete_by_hand(event_id, by=SCENARIO)
            case _:
                assert_never(step)

    async def _delete(self, names: Iterable[str]) -> tuple[EventId, ...]:
        use_cases = self._opened.use_cases
        context = use_cases.new_context(SCENARIO)

        def work(tx: Transaction) -> list[EventRecord]:
            found = [vm for name in names if (vm := inventory.by_name(tx, name)) is not None]
            event_ids = operate(tx, found, Action.DELETE, context=context)
            return [record for each in event_ids if (record := tx.event(each)) is not None]

        return self._visible(await use_cases.engine.decide(work))

    def _replay(self, step: steps.Replay) -> tuple[EventId, ...]:
        try:
            recorded = read_timeline(Path(step.file))
        except StartError as error:
            raise StageError(str(error)) from error
        self._opened.replay(recorded, self._own_scope())
        return event_ids_of(recorded, self._played.handler_vm)

    async def _host(self, vm: str | None) -> HostName:
        [name] = self._vms(() if vm is None else (vm,))
        about = await self._opened.use_cases.activation.about(ResourceName(name))
        if about is None:
            raise StageError(f"VM {name} is gone")
        return about.resource.host

    def _vms(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return names or (self._played.handler_vm,)

    def _visible(self, records: Iterable[EventRecord]) -> tuple[EventId, ...]:
        """Those in the document of the handler's VM; all of them, if none is."""
        scope_id = self._own_scope()
        records = list(records)
        inside = [each for each in records if each.scope_id == scope_id]
        return tuple(record.event.id for record in inside or records)

    def _own_scope(self) -> ScopeId:
        [own] = [vm for vm in self._played.fleet if vm.name == self._played.handler_vm]
        return fleet.scope_of(own)[0]

    # --- what is seen ---

    def _observe(self, seen: SeenRequest) -> None:
        self._tell(request_of(seen))

    def _hear(self, commit: Commit) -> None:
        for fact in commit.transitions:
            if not isinstance(fact, EventTransition):
                continue
            event = fact.event
            moved = EventMoved(
                event_id=event.id,
                type=event.type.value,
                state=EventState(event.status.value),
                resources=event.resources,
                approved_by=None if event.approval is None else event.approval.by,
            )
            if self._seen.get(event.id) != moved:
                self._seen[event.id] = moved
                self._tell(moved)

    @property
    def _opened(self) -> Emulator:
        if self._emulator is None:
            raise RuntimeError("the stage has not been set up")
        return self._emulator

    @property
    def _played(self) -> Scenario:
        if self._scenario is None:
            raise RuntimeError("the stage has not been set up")
        return self._scenario


def event_order(step: steps.Schedule, vms: tuple[str, ...]) -> schedule.EventOrder:
    return schedule.EventOrder(
        type=step.type,
        resources=tuple(map(ResourceName, vms)),
        source=step.source or schedule.usual_source(step.type),
        notice=step.notice,
        short_notice=step.notice is not None,
        duration=step.duration,
        description=step.description,
    )


def work_order(step: steps.Maintain) -> schedule.WorkOrder:
    return schedule.WorkOrder(
        type=step.type,
        notice=step.notice,
        short_notice=step.notice is not None,
        duration=step.duration,
        description=step.description,
    )
