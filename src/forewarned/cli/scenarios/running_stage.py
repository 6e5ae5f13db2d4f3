"""A running emulator as the stage of a scenario, over the control API."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final, Self
from urllib.parse import quote

import httpx2

from forewarned.cli.connection import ENDLESS, Answer, Control
from forewarned.cli.failures import CommandError
from forewarned.cli.watch import read_message
from forewarned.config.durations import format_duration
from forewarned.control.v1 import wire
from forewarned.core.ids import EventId
from forewarned.scenarios import steps
from forewarned.scenarios.model import Scenario, Service
from forewarned.scenarios.observations import EventMoved, EventState
from forewarned.scenarios.ports import StageError, Tell
from forewarned.scenarios.stages.requests import request_of
from forewarned.service.requests.watch import SeenRequest

_EVENTS: Final = "/metadata/scheduledevents?api-version=2020-07-01"
_Body = Mapping[str, object]


class RunningStage:
    """The VMs are those of the emulator's own fleet, and its clock is put back in the end."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._clock: wire.Clock | None = None
        self._metadata = ""
        self._scenario: Scenario | None = None
        self._scope = ""
        self._now: datetime | None = None
        self._has_faults = False
        self._moved: dict[EventId, EventMoved] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(StageError):
            if self._has_faults:
                await self._ask("DELETE", "/v1/faults")
            if self._clock is not None:
                await self._set_clock(self._clock.speed)

    @property
    def now(self) -> datetime:
        if self._now is None:
            raise RuntimeError("the stage has not been set up")
        return self._now

    @property
    def endpoint(self) -> str:
        vm = "" if self._scenario is None else self._scenario.handler_vm
        return f"{self._metadata}/vm/{vm}"

    async def set_up(self, scenario: Scenario, tell: Tell) -> None:
        self._scenario = scenario
        _refuse_settings(scenario.service)
        for vm in scenario.fleet:
            found = await self._vm(vm.name)
            if vm.name == scenario.handler_vm:
                self._scope = found.scope
        clock = (await self._ask("GET", "/v1/clock")).read(wire.Clock)
        if clock.state == "real":
            raise StageError("this server's clock is real time: start it with --clock paused")
        self._now = clock.now
        await self._set_clock(scenario.service.clock_speed)
        self._clock = clock
        self._metadata = (await self._ask("GET", "/v1/endpoints")).read(wire.Endpoints).metadata
        await self._watch(tell)

    async def carry_out(
        self, step: steps.ServiceStep, events: Mapping[str, tuple[EventId, ...]]
    ) -> tuple[EventId, ...]:
        made: tuple[EventId, ...] = ()
        match step:
            case steps.Schedule() | steps.Fail() | steps.Maintain() | steps.Terminate():
                made = await self._make_events(step)
            case steps.Approve() | steps.Cancel() | steps.Complete():
                for event_id in events[step.event]:
                    await self._move_event(step, event_id)
            case steps.RestartService() | steps.Replay():
                kind = type(step).__struct_config__.tag
                raise StageError(f"the step {kind} needs an emulator of its own")
            case _:
                await self._set(step)
        self._now = (await self._ask("GET", "/v1/clock")).read(wire.Clock).now
        return made

    async def _set(
        self, step: steps.Advance | steps.RunClock | steps.AddFault | steps.ClearFaults
    ) -> None:
        match step:
            case steps.Advance():
                await self._ask("POST", "/v1/clock/step", {"by": format_duration(step.by)})
            case steps.RunClock():
                await self._set_clock(step.speed)
            case steps.AddFault():
                self._has_faults = True
                await self._ask("POST", "/v1/faults", _fault(step))
            case steps.ClearFaults():
                await self._ask("DELETE", "/v1/faults")

    # --- events ---

    async def _make_events(self, step: steps.EventStep) -> tuple[EventId, ...]:
        own = "" if self._scenario is None else self._scenario.handler_vm
        match step:
            case steps.Schedule():
                path, body = "/v1/events", _schedule(step, step.vms or (own,))
            case steps.Terminate():
                path, body = "/v1/events", {"type": "Terminate", "resources": step.vms or (own,)}
            case steps.Maintain():
                path, body = await self._of_host(step.vm or own, "maintain"), _work(step)
            case steps.Fail():
                path, body = await self._of_host(step.vm or own, "fail"), {}
        made = (await self._ask("POST", path, body or None)).read(wire.Events).events
        inside = [event for event in made if event.scope == self._scope]
        return tuple(EventId(event.event_id) for event in inside or made)

    async def _move_event(
        self, step: steps.Approve | steps.Cancel | steps.Complete, event_id: EventId
    ) -> None:
        match step:
            case steps.Approve(by=str()):
                await self._approve_as(step.by, event_id)
            case steps.Approve():
                await self._ask("POST", f"/v1/events/{event_id}/approve")
            case steps.Cancel():
                await self._ask("POST", f"/v1/events/{event_id}/cancel", {})
            case steps.Complete():
                await self._ask("POST", f"/v1/events/{event_id}/complete")

    async def _approve_as(self, vm: str | None, event_id: EventId) -> None:
        url = f"{self._metadata}/vm/{vm}{_EVENTS}"
        try:
            async with httpx2.AsyncClient(trust_env=False, headers={"Metadata": "true"}) as client:
                answer = await client.post(url, json={"StartRequests": [{"EventId": event_id}]})
        except httpx2.HTTPError as error:
            raise StageError(f"VM {vm} can't approve: {error}") from error
        if answer.is_error:
            raise StageError(f"VM {vm} can't approve: {answer.status_code} {answer.text}")

    async def _of_host(self, vm: str, what: str) -> str:
        return f"/v1/hosts/{quote((await self._vm(vm)).host, safe='')}/{what}"

    async def _vm(self, name: str) -> wire.Vm:
        return (await self._ask("GET", f"/v1/vms/{quote(name, safe='')}")).read(wire.Vm)

    # --- the connection ---

    async def _set_clock(self, speed: float) -> None:
        if speed:
            await self._ask("POST", "/v1/clock/speed", {"speed": speed})
        else:
            await self._ask("POST", "/v1/clock/pause")

    async def _ask(self, method: str, path: str, body: _Body | None = None) -> Answer:
        def ask() -> Answer:
            match method:
                case "GET":
                    return self._control.get(path)
                case "DELETE":
                    return self._control.delete(path)
                case _:
                    return self._control.post(path, body, timeout=ENDLESS)

        try:
            return await asyncio.to_thread(ask)
        except CommandError as error:
            raise StageError(error.message) from error

    # --- what is seen ---

    async def _watch(self, tell: Tell) -> None:
        def hear_request(sent: httpx2.ServerSentEvent) -> None:
            if sent.event == "request":
                seen = wire.decode(sent.data, wire.SeenRequest)
                self._now = seen.at
                tell(request_of(_seen(seen)))

        def hear_change(sent: httpx2.ServerSentEvent) -> None:
            message = read_message(sent.event, sent.data)
            event = message.event if isinstance(message, wire.Change) else None
            if event is None or not self._is_ours(event):
                return
            moved = _moved(event)
            if self._moved.get(moved.event_id) != moved:
                self._moved[moved.event_id] = moved
                tell(moved)

        await _follow(self._control.requests, hear_request)
        await _follow(self._control.changes, hear_change)
        # Any read finds all processes of the server in step.
        await self._ask("GET", "/v1/clock")

    def _is_ours(self, event: wire.Event) -> bool:
        """Of a VM of the scenario: the emulator may have others, and others may use it."""
        fleet = () if self._scenario is None else self._scenario.fleet
        ours = {vm.name.casefold() for vm in fleet}
        return not ours.isdisjoint(name.casefold() for name in event.resources)


async def _follow(
    stream: Callable[[], Iterator[httpx2.ServerSentEvent]],
    hear: Callable[[httpx2.ServerSentEvent], None],
) -> None:
    """Hear each message, by a thread that ends with the connection.

    Returns when the first one, the hello, is there. Raises StageError.
    """
    loop = asyncio.get_running_loop()
    begun: asyncio.Future[None] = loop.create_future()

    def begin(error: CommandError | None) -> None:
        if not begun.done():
            begun.set_result(None) if error is None else begun.set_exception(error)

    def listen() -> None:
        with suppress(RuntimeError):  # of a loop that has ended meanwhile
            try:
                for each in stream():
                    if each.event == "hello":
                        loop.call_soon_threadsafe(begin, None)
                    else:
                        loop.call_soon_threadsafe(hear, each)
            except CommandError as error:
                loop.call_soon_threadsafe(begin, error)

    threading.Thread(target=listen, name="stream", daemon=True).start()
    try:
        await begun
    except CommandError as error:
        raise StageError(error.message) from error


def _refuse_settings(service: Service) -> None:
    named = {
        "first_call_delay": service.first_call_delay,
        "rate_limit": service.rate_limit,
        "reset_incarnation": service.reset_incarnation,
    }
    wanted = [name for name, value in named.items() if value]
    if wanted:
        raise StageError(
            f"the scenario sets {', '.join(wanted)}, which can only be set when an emulator starts"
        )


def _moved(event: wire.Event) -> EventMoved:
    return EventMoved(
        event_id=EventId(event.event_id),
        type=event.type.value,
        state=EventState(event.status.value),
        resources=event.resources,
        approved_by=None if event.approval is None else event.approval.by,
    )


def _seen(seen: wire.SeenRequest) -> SeenRequest:
    return SeenRequest(
        vm=seen.vm,
        asks=seen.asks,
        method=seen.method,
        target=seen.target,
        headers=seen.headers,
        body=seen.body.encode(),
        status=seen.status,
        refusal=seen.refusal,
    )


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _schedule(step: steps.Schedule, vms: tuple[str, ...]) -> dict[str, object]:
    return {"resources": vms, **_given(source=step.source), **_work(step)}


def _work(step: steps.Schedule | steps.Maintain) -> dict[str, object]:
    return {
        "short_notice": step.notice is not None,
        **_given(
            type=step.type,
            notice=None if step.notice is None else format_duration(step.notice),
            duration=None if step.duration is None else format_duration(step.duration),
            description=step.description,
        ),
    }


def _fault(step: steps.AddFault) -> dict[str, object]:
    fault = step.fault
    return _given(
        kind=fault.kind,
        status=fault.status,
        retry_after=None if fault.retry_after is None else format_duration(fault.retry_after),
        delay=None if fault.delay is None else format_duration(fault.delay),
        times=fault.times,
        vm=fault.vm,
        method=fault.method,
    )
