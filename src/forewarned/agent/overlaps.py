"""Events of one VM that overlap. Pure.

Invariant: nothing is put back that another event, which is not over yet, needs prepared. Undoing
one event's drain would put traffic on a VM that the next one restarts. The other event may have
used another hook, which found the VM drained and left it so.
"""

from collections.abc import Mapping

from forewarned.agent.model import Phase, Progress, Turn

Targets = Mapping[str, frozenset[str]]
"""What each step changes, by its name. A step always conflicts with itself."""


def touched_by(step: str, targets: Targets) -> frozenset[str]:
    """Everything that no other step may change meanwhile."""
    return targets.get(step, frozenset()) | {f"step {step}"}


def held_back_by(
    key: str, turn: Turn, events: Mapping[str, Progress], targets: Targets
) -> str | None:
    """The id of an event that is not over and needs what the step would put back; None for none."""
    if turn.phase is Phase.PREPARE:
        return None
    touched = touched_by(turn.step, targets)
    for other, progress in events.items():
        if other == key or progress.is_gone or progress.is_finished:
            continue
        steps = (*progress.plan.prepare, *progress.plan.recover)
        if any(touched & touched_by(step.name, targets) for step in steps):
            return progress.event_id
    return None
