"""Carrying out the steps that an emulator was given to begin with, once for each content.

Invariant: a start with a step that can't be carried out takes none of the steps.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, assert_never

import msgspec

from forewarned.config.mistakes import did_you_mean
from forewarned.control.startup.files import StepFile
from forewarned.control.startup.steps import AddFault, AnyStep, Fail, Maintain, Schedule, vms_of
from forewarned.core.errors import RefusalError
from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import Actor
from forewarned.service.events.schedule import Scheduler
from forewarned.service.fleet.comparison import Present, compare
from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Binding, Caller
from forewarned.service.use_cases import UseCases

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
    fresh = [each for each in step_files if not await _is_done(each, use_cases)]
    basis = use_cases.basis
    rehearsed = Scheduler(use_cases.engine.rehearsal(), basis.rules, basis.new_event_id)
    for each in fresh:
        for number, step in enumerate(each.steps):
            try:
                await _make_events(step, rehearsed, use_cases)
            except RefusalError as error:
                raise each.refusal(number, str(error)) from error
    for each in fresh:
        for step in each.steps:
            await _switch_notice_on(step, use_cases)
            await _make_events(step, use_cases.scheduler, use_cases)
        await use_cases.engine.decide(partial(_note_done, steps=each))
    # A server forgets its faults when it stops, so these are added at each start.
    for each in step_files:
        for step in each.steps:
            if isinstance(step, AddFault):
                use_cases.faults.add(step.fault())


async def _make_events(step: AnyStep, scheduler: Scheduler, use_cases: UseCases) -> None:
    match step:
        case Schedule():
            await scheduler.schedule(step.request(), by=_BY)
        case Maintain():
            await scheduler.maintain_host(await _host(step.vm, use_cases), step.request(), by=_BY)
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


async def _is_done(steps: StepFile, use_cases: UseCases) -> bool:
    note = _note(steps)
    return await use_cases.engine.ask(lambda s: s.note(note)) == _digest(steps.steps)


def _note_done(tx: Transaction, *, steps: StepFile) -> None:
    tx.put_note(_note(steps), _digest(steps.steps))


def _note(steps: StepFile) -> str:
    """By the file's own name: a directory may be mounted elsewhere tomorrow."""
    return f"startup {Path(steps.file.source).name}"


def _digest(steps: Sequence[AnyStep]) -> str:
    """Of what differs from defaults, so that a new version with more fields makes the same."""
    written = msgspec.json.encode(steps, enc_hook=str)
    return hashlib.sha256(written).hexdigest()
