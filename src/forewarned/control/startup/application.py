"""Carrying out the steps that an emulator was given to begin with, once for each content.

Invariants: a start with a step that can't be carried out takes none of the steps. No step is taken
twice, whenever a start is cut short: what a step changes and that it was taken are one transaction.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar, assert_never

import msgspec

from forewarned.config.mistakes import did_you_mean
from forewarned.control.startup.files import StepFile
from forewarned.control.startup.steps import AddFault, AnyStep, Fail, Maintain, Schedule, vms_of
from forewarned.core.errors import RefusalError
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Actor
from forewarned.service.engine import Engine
from forewarned.service.events.schedule import Scheduler
from forewarned.service.fleet.comparison import Present, compare
from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Binding, Caller
from forewarned.service.use_cases import UseCases

T = TypeVar("T")

_BY: Final = Actor(name="start-up file")
_LOOPBACK: Final = "127.0.0.1"


async def refuse_unknown_vms(
    step_files: Sequence[StepFile], plan: FleetPlan | None, use_cases: UseCases
) -> None:
    """Before the plan is applied, so that nothing is. Raises FleetFileError."""
    if not step_files:
        return
    known = set() if plan is None else set(_names_in(plan, use_cases.basis.address_range))
    known |= await use_cases.engine.ask(lambda s: {each.name for each in s.bindings()})
    folded = {name.casefold() for name in known}
    for each in step_files:
        for number, step in enumerate(each.steps):
            for name in vms_of(step):
                if name.casefold() not in folded:
                    raise each.refusal(number, _no_vm(name, known))


async def carry_out(step_files: Sequence[StepFile], use_cases: UseCases) -> None:
    """Once the fleet is there. Raises FleetFileError."""
    basis = use_cases.basis
    rehearsed = Scheduler(use_cases.engine.rehearsal(), basis.rules, basis.new_event_id)
    begun = [(each, await _steps_taken(each, use_cases)) for each in step_files]
    for each, taken in begun:
        for number, step in enumerate(each.steps[taken:], taken):
            try:
                await _make_events(step, rehearsed, use_cases)
            except RefusalError as error:
                raise each.refusal(number, str(error)) from error
    for each, taken in begun:
        for number, step in enumerate(each.steps[taken:], taken):
            await _switch_notice_on(step, use_cases)
            noting = _Noting(use_cases.engine, partial(_note_taken, steps=each, taken=number + 1))
            scheduler = Scheduler(noting, basis.rules, basis.new_event_id)
            await _make_events(step, scheduler, use_cases)
        if taken < len(each.steps):
            # The last ones may have been faults, of which nothing is noted.
            done = partial(_note_taken, steps=each, taken=len(each.steps))
            await use_cases.engine.decide(done)
    # A server forgets its faults when it stops, so these are added at each start.
    for each in step_files:
        for step in each.steps:
            if isinstance(step, AddFault):
                use_cases.faults.add(step.fault)


class _Noting:
    """Decides as the engine does, and leaves a note in the same transaction."""

    def __init__(self, engine: Engine, note: Callable[[Transaction], None]) -> None:
        self._engine = engine
        self._note = note

    async def decide(
        self, function: Callable[[Transaction], T], *, touching: Collection[ScopeId] = ()
    ) -> T:
        def noted(tx: Transaction) -> T:
            result = function(tx)
            self._note(tx)
            return result

        return await self._engine.decide(noted, touching=touching)


async def _make_events(step: AnyStep, scheduler: Scheduler, use_cases: UseCases) -> None:
    match step:
        case Schedule():
            await scheduler.schedule(step.order(), by=_BY)
        case Maintain():
            await scheduler.maintain_host(await _host(step.vm, use_cases), step.order(), by=_BY)
        case Fail():
            await scheduler.fail_host(await _host(step.vm, use_cases), by=_BY)
        case AddFault():
            pass
        case _:
            assert_never(step)


async def _switch_notice_on(step: AnyStep, use_cases: UseCases) -> None:
    """As if the VMs had read before: an event without notice would be over before they do."""
    if isinstance(step, AddFault):
        return
    names = [ResourceName(name) for name in vms_of(step)]

    def bindings(snapshot: Snapshot) -> list[Binding | None]:
        return [snapshot.binding(name) for name in names]

    for found in await use_cases.engine.ask(bindings):
        if found is not None:
            caller = Caller(name=found.name, scope_id=found.scope_id)
            await use_cases.activation.activate(caller, address=_LOOPBACK)


async def _host(vm: str, use_cases: UseCases) -> HostName:
    about = await use_cases.activation.about(ResourceName(vm))
    assert about is not None  # noqa: S101  # see refuse_unknown_vms
    return about.resource.host


def _names_in(plan: FleetPlan, address_range: Network) -> Iterator[str]:
    expansion = compare(plan, Present(), address_range=address_range, prune=False).expansion
    for planned in expansion.scopes():
        yield from planned.scope.resources


def _no_vm(name: str, known: Collection[str]) -> str:
    return f"no VM is named {name!r}{did_you_mean(name, known)}"


async def _steps_taken(steps: StepFile, use_cases: UseCases) -> int:
    """How many of them an earlier start has taken."""
    key = _key(steps)
    note = await use_cases.engine.ask(lambda s: s.note(key))
    digest, _, taken = (note or "").partition(" ")
    if digest != _digest(steps.steps):
        return 0
    return int(taken) if taken else len(steps.steps)


def _note_taken(tx: Transaction, *, steps: StepFile, taken: int) -> None:
    """The digest alone once all are taken, as versions before noted it."""
    some = f" {taken}" if taken < len(steps.steps) else ""
    tx.put_note(_key(steps), _digest(steps.steps) + some)


def _key(steps: StepFile) -> str:
    return f"startup {steps.name}"


def _digest(steps: Sequence[AnyStep]) -> str:
    """Of what differs from defaults, so that a new version with more fields makes the same."""
    written = msgspec.json.encode(steps, enc_hook=str)
    return hashlib.sha256(written).hexdigest()
