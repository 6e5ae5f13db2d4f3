"""A scenario, adapted to a running emulator and a handler that is not ours to start. Pure."""

import msgspec

from forewarned.cli.failures import UsageError
from forewarned.scenarios import model, steps
from forewarned.scenarios.model import Scenario

_OWN = steps.StartHandler | steps.StopHandler | steps.KillHandler | steps.WaitExited
_UNSEEN = model.Exited | model.Running | model.Printed | model.NotPrinted


def playable(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """Without the expectations that can't be seen, and their titles. Raises UsageError."""
    if any(isinstance(step, _OWN) for step in scenario.steps) or not scenario.start_handler:
        raise UsageError(
            f"scenario {scenario.name} starts or ends the handler",
            "'forewarned exam --scenario FILE -- COMMAND' runs it with the handler's command.",
            code="scenario_not_playable",
        )
    seen = tuple(each for each in scenario.expectations if not isinstance(each, _UNSEEN))
    unseen = [
        each.title or each.words for each in scenario.expectations if isinstance(each, _UNSEEN)
    ]
    if not seen:
        raise UsageError(
            f"scenario {scenario.name} expects nothing that can be seen from outside the handler",
            code="scenario_not_playable",
        )
    return msgspec.structs.replace(scenario, expectations=seen), unseen


def renamed(scenario: Scenario, vm: str) -> Scenario:
    """With another VM in the place of the handler's own."""
    old = scenario.handler_vm

    def new(name: str | None) -> str | None:
        return vm if name == old else name

    fleet = tuple(
        msgspec.structs.replace(each, name=new(each.name) or vm) for each in scenario.fleet
    )
    changed: list[steps.AnyStep] = []
    for step in scenario.steps:
        match step:
            case steps.Schedule() | steps.Terminate():
                names = tuple(new(name) or vm for name in step.vms)
                changed.append(msgspec.structs.replace(step, vms=names))
            case steps.Fail() | steps.Maintain() | steps.AddFault():
                changed.append(msgspec.structs.replace(step, vm=new(step.vm)))
            case steps.Approve():
                changed.append(msgspec.structs.replace(step, by=new(step.by)))
            case _:
                changed.append(step)
    return msgspec.structs.replace(scenario, vm=vm, fleet=fleet, steps=tuple(changed))
