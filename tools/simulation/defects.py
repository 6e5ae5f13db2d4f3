"""Deliberate defects, one for each group of laws: the simulation must find every one of them.

They are edits like those of `tools.mutants`, which single tests must catch. These are caught by
nothing but chance and the laws, within `WITHIN` seeds.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tools.mutants.mutant import Mutant
from tools.mutants.trial import applied

WITHIN: Final = 200
"""Seeds."""
_BY: Final = ("tools.simulation",)

DEFECTS: Final = (
    Mutant(
        name="early",
        file="core/starting.py",
        old="event.not_before is not None and event.not_before <= now",
        new="event.not_before is not None and (event.not_before - now).total_seconds() < 600",
        breaks="I1: an event starts up to ten minutes before its NotBefore",
        tests=_BY,
    ),
    Mutant(
        name="short",
        file="core/notice.py",
        old="return timedelta(minutes=10)",
        new="return timedelta(minutes=9)",
        breaks="I2: a Redeploy has less notice than its VMs were promised",
        tests=_BY,
    ),
    Mutant(
        name="gullible",
        file="storage/postgres/nodes/node_store.py",
        old="    if lead > _MOST_LEAD:\n",
        new="    if lead > 1000 * _MOST_LEAD:\n",
        breaks="I4: a node believes any clock of the store, and starts events minutes early",
        tests=_BY,
    ),
    Mutant(
        name="silent",
        file="core/change.py",
        old="incarnation=before.incarnation + 1",
        new="incarnation=before.incarnation + (len(change.scope.events) != len(before.events))",
        breaks="I6: a start is shown under the same incarnation",
        tests=_BY,
    ),
    Mutant(
        name="reset",
        file="service/restoration.py",
        old="    return max(least, seconds) if seconds < _MOST else least",
        new="    return offset + least - least",
        breaks="I7: after a failover that lost commits, incarnations fall",
        tests=_BY,
    ),
    Mutant(
        name="hasty",
        file="metadata/http/barrier.py",
        old="        if name in self._lately:\n            return True",
        new="        return True",
        breaks="I7: a VM that comes from another node is shown what this node happens to know",
        tests=_BY,
    ),
    Mutant(
        name="belated",
        file="core/lifecycle.py",
        old="event.status is EventStatus.SCHEDULED and event.approval is None",
        new="event.approval is None",
        breaks="I13: an event that has started is approved",
        tests=_BY,
    ),
    Mutant(
        name="promised",
        file="service/events/approval.py",
        old="        await self._engine.decide(decision, touching=(caller.scope_id,))\n",
        new=(
            "        from contextlib import suppress\n"
            "        from forewarned.service.errors import StoreUnavailableError\n"
            "        with suppress(StoreUnavailableError):\n"
            "            await self._engine.decide(decision, touching=(caller.scope_id,))\n"
        ),
        breaks="I14, I12: an approval is confirmed although the store never had it",
        tests=_BY,
    ),
    Mutant(
        name="unmade",
        file="service/events/schedule.py",
        old=(
            "        return await self._engine.decide(decision)\n\n    async def maintain_host(\n"
        ),
        new=(
            "        made = []\n"
            "        from contextlib import suppress\n"
            "        from forewarned.service.errors import StoreUnavailableError\n"
            "        with suppress(StoreUnavailableError):\n"
            "            await self._engine.decide(lambda tx: made.append(decision(tx)))\n"
            "        return made[-1] if made else []\n"
            "\n"
            "    async def maintain_host(\n"
        ),
        breaks="I14: a schedule is confirmed although the store never had it",
        tests=_BY,
    ),
    Mutant(
        name="piecemeal",
        file="service/events/approval.py",
        old=(
            "            self._approve(tx, scope, event_ids, by)\n\n"
            "        await self._engine.decide(decision, touching=(caller.scope_id,))\n"
        ),
        new=(
            "            self._approve(tx, scope, [each], by)\n\n"
            "        for each in event_ids:\n"
            "            await self._engine.decide(decision, touching=(caller.scope_id,))\n"
        ),
        breaks="I15: the events of one request are approved one after another",
        tests=_BY,
    ),
    Mutant(
        name="alone",
        file="core/starting.py",
        old="        and cause(other, now=now) is None\n",
        new="        and cause(other, now=now) is not None\n",
        breaks="I17: a Terminate starts while its neighbours still prepare",
        tests=_BY,
    ),
    Mutant(
        name="vanished",
        file="storage/relational/changes.py",
        old="for fact in change.transitions]",
        new="for fact in change.transitions[:1]]",
        breaks="I19, I29: of several changes in one transaction only the first is recorded",
        tests=_BY,
    ),
    Mutant(
        name="given-up",
        file="service/lifecycle/waker.py",
        old="self._retry_at = self._clock.now() + _RETRY",
        new="self._retry_at = self._clock.now() + 600 * _RETRY",
        breaks="I20: after a failure of the store nothing starts for minutes",
        tests=_BY,
    ),
    Mutant(
        name="again",
        file="actuators/decision.py",
        old='        return Wait(f"the VM is {seen.power}")\n    return _again_if_safe(case)',
        new='        return Wait(f"the VM is {seen.power}")\n    return Act()',
        breaks="I22: what an actuator was doing when it was killed is done a second time",
        tests=_BY,
    ),
    Mutant(
        name="abandoned",
        file="storage/relational/tasks.py",
        old="WHERE actuator = :actuator AND claimable_at <= :now AND ended_at IS NULL",
        new="WHERE actuator = :actuator AND claimable_at <= :now AND attempt = 0",
        breaks="I22: a task that an actuator left unfinished is never taken up again",
        tests=_BY,
    ),
    Mutant(
        name="dropped",
        file="metadata/http/barrier.py",
        old="if name in self._before or (is_kept and self.is_stale):",
        new="if name in self._before:",
        breaks="I24: a node that is cut off turns away VMs that it served before",
        tests=_BY,
    ),
    Mutant(
        name="welcoming",
        file="metadata/http/barrier.py",
        old="            return is_kept\n",
        new="            return is_kept or self.is_stale\n",
        breaks="I24, I7: a node that is cut off serves VMs that come from another",
        tests=_BY,
    ),
    Mutant(
        name="unsent",
        file="publishing/publisher.py",
        old="outcome=outcome, jitter",
        new="outcome=Delivered(), jitter",
        breaks="messages: one that was not taken counts as delivered",
        tests=_BY,
    ),
    Mutant(
        name="jumbled",
        file="storage/relational/publishing/outbox.py",
        old="THEN NULL ELSE :now END)",
        new="THEN :now ELSE :now END)",
        breaks="messages: those of one scope don't wait for each other",
        tests=_BY,
    ),
    Mutant(
        name="deaf",
        file="service/board.py",
        old="if shown is not None and shown.revision >= content.revision:",
        new="if shown is not None and shown.revision + 1 >= content.revision:",
        breaks="I25: a Board goes on showing what the store no longer holds",
        tests=_BY,
    ),
    Mutant(
        name="talkative",
        file="service/lifecycle/activation.py",
        old="if known is not None and now < known.mark_at:",
        new="if known is not None and now < known.at:",
        breaks="I26: the store is told of every poll",
        tests=_BY,
    ),
    Mutant(
        name="forgetful",
        file="agent/plan.py",
        old="        return Settle(turn=turn, outcome=_cut_short())",
        new="        return Run(turn=turn, limit=MARGIN)",
        breaks="I30: a hook that was running when the agent was killed is run again",
        tests=_BY,
    ),
    Mutant(
        name="untidy",
        file="agent/plan.py",
        old="    return outcome is not None and outcome.verdict is not Verdict.SKIPPED\n",
        new="    return outcome is not None and outcome.verdict is Verdict.DONE\n",
        breaks="I30: what a step has changed before it failed is not put back",
        tests=_BY,
    ),
    Mutant(
        name="overzealous",
        file="agent/plan.py",
        old="if turn.phase is Phase.UNDO and not _was_touched(progress, step):",
        new="if turn.phase is Phase.UNDO and not step.has_undo:",
        breaks="I30: what no step has changed is put back",
        tests=_BY,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    defect: Mutant
    seeds: int
    """Until it was found; as many as were tried if it was not."""
    found: str | None
    """The law that was broken; None if none was."""

    @property
    def is_found(self) -> bool:
        """By a law that the defect breaks: that the edit fails in some other way is no proof."""
        names = self.defect.breaks.partition(":")[0].split(", ")
        found = self.found or ""
        return any(found.startswith((f"{name}:", f"{name},")) for name in names)


def hunts(names: list[str], *, seeds: int = WITHIN, parallel: int) -> Iterator[Hunt]:
    for defect in DEFECTS:
        if not names or defect.name in names:
            yield hunt(defect, seeds=seeds, parallel=parallel)


def hunt(defect: Mutant, *, seeds: int = WITHIN, parallel: int = 1) -> Hunt:
    """In a copy of the tree."""
    with applied(defect) as copy:
        command = [sys.executable, "-m", "tools.simulation", "--json", "--stop"]
        run = subprocess.run(
            [*command, "--seeds", str(seeds), "--parallel", str(parallel)],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}"},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    told = json.loads(run.stdout)
    broken = told["violations"]
    law = broken[0]["violation"].strip().splitlines()[-1] if broken else None
    return Hunt(defect=defect, seeds=told["seeds"], found=law)
