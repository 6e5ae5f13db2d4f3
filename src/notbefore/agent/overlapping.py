"""Events of one VM that overlap. Pure.

The rule that must stay true: nothing is put back, or recovered, that another event which is still
to come has prepared. Undoing the drain of one would put traffic on a VM that the next restarts.
"""

from collections.abc import Mapping

from notbefore.agent.model import Phase, Progress, Turn


def held_back_by(key: str, turn: Turn, events: Mapping[str, Progress]) -> str | None:
    """The id of an event that is not over and needs this step as it is; None for none."""
    if turn.phase is Phase.PREPARE:
        return None
    for other, progress in events.items():
        if other == key or progress.is_gone or progress.is_finished:
            continue
        plan = progress.plan
        if any(step.name == turn.step for step in (*plan.prepare, *plan.recover)):
            return progress.event_id
    return None
