"""A soak from its beginning to its end."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from tools.soak import judge, samples
from tools.soak.cluster import Cluster, running_cluster
from tools.soak.judge import Verdict
from tools.soak.operators import Actuator, Operators
from tools.soak.samples import Sample
from tools.soak.tally import Tally
from tools.soak.vms import Vms
from tools.soak.watchers import ChangesReader, Receiver

EVENTS: Final = 0.4 / 86_400
"""Events of a VM in a second, as docs/sizing.md has them: 2,000 a day for 5,000 VMs."""
_SHORTEST: Final = timedelta(minutes=1)
"""What the settings allow."""
_CALM: Final = 10.0
"""Seconds after the last event, in which all who are told hear of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    minutes: float = 60
    vms: int = 5_000
    polls: float = 300
    """In a second."""
    speed: float = 60
    """How many times as many events as a fleet of this size has."""
    every: float = 60
    """Seconds from one sample to the next."""

    @property
    def events(self) -> float:
        """In a second."""
        return self.vms * EVENTS * self.speed

    @property
    def retention(self) -> timedelta:
        """A sixth of the run: rows are as old as that for the first time during the warm-up."""
        return max(_SHORTEST, timedelta(minutes=self.minutes / 6))


@dataclass(slots=True, kw_only=True)
class Report:
    plan: Plan
    tally: Tally
    taken: list[Sample] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    messages: int = 0
    """That the subscriber has taken."""
    refused: int = 0
    repeated: int = 0
    log: list[str] = field(default_factory=list)
    """What nodes have warned of."""

    @property
    def faults(self) -> list[str]:
        """What has grown, and which laws were broken; empty if all is well."""
        grown = [f"{each.series}: {each.fault}" for each in self.verdicts if each.fault]
        errors = [line for line in self.log if " ERROR " in line]
        return [*grown, *self.tally.broken, *errors]


async def soak(plan: Plan, say: Callable[[Sample], None]) -> Report:
    """`say` is given each sample."""
    tally, receiver = Tally(), Receiver()
    report = Report(plan=plan, tally=tally)
    async with receiver.listening():
        stage = running_cluster(vms=plan.vms, retention=plan.retention, webhook=receiver.port)
        # Here, not in a thread: PostgreSQL ends with the thread that has started it.
        with stage as cluster:
            await _use(cluster, plan, report, receiver, say)
    report.messages, report.refused = len(receiver.taken), len(receiver.refused)
    report.repeated = receiver.repeated
    report.verdicts = judge.judged(report.taken)
    return report


async def _use(
    cluster: Cluster,
    plan: Plan,
    report: Report,
    receiver: Receiver,
    say: Callable[[Sample], None],
) -> None:
    tally, nodes = report.tally, list(cluster.nodes.values())
    fleet = cluster.vms()
    operators = Operators(nodes, [vm.name for vm in fleet], rate=plan.events, tally=tally)
    reader = ChangesReader(nodes, hear=operators.hear, tally=tally)
    vms = Vms(nodes, fleet, rate=plan.polls, tally=tally)
    async with asyncio.TaskGroup() as group:
        others = [group.create_task(each.run()) for each in (vms, reader)]
        await vms.have_read.wait()
        await reader.is_connected.wait()
        others.append(group.create_task(Actuator(nodes, tally=tally).run()))
        scheduling = group.create_task(operators.run())
        await _watch(cluster, plan, report, receiver, say)
        scheduling.cancel()
        await asyncio.sleep(_CALM)
        for each in others:
            each.cancel()
    for name in cluster.nodes:
        report.log += cluster.log(name)
    if unheard := operators.scheduled - reader.scheduled:
        tally.broke(f"a reader of changes was not told of {len(unheard)} events: {min(unheard)} …")


async def _watch(
    cluster: Cluster,
    plan: Plan,
    report: Report,
    receiver: Receiver,
    say: Callable[[Sample], None],
) -> None:
    began = last = time.monotonic()
    taken: Sample = {}
    while time.monotonic() < began + 60 * plan.minutes:
        due = began + (len(report.taken) + 1) * plan.every
        await asyncio.sleep(max(0, due - time.monotonic()))
        # In a thread: who polls meanwhile must not wait for the database to count.
        found = await asyncio.to_thread(samples.sample, cluster, report.tally)
        now = time.monotonic()
        found |= samples.processors(found, taken, now - last)
        found |= samples.clients(report.tally, taken, now - last)
        found["removed/undelivered messages"] = len(receiver.refused) - found["queue/undelivered"]
        found["minutes"] = (now - began) / 60
        taken, last = found, now
        report.taken.append(taken)
        say(taken)
