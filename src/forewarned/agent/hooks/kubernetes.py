"""Cordons this VM's node and evicts its pods, as disruption budgets allow; then uncordons it.

Invariant: only a node that the agent has cordoned is uncordoned, and only when the last event it
was cordoned for is over. An annotation on the node names these events. It is written in one step
with the cordon, so neither a crash nor an operator's `kubectl cordon` can be mistaken for it.
"""

import asyncio
from datetime import timedelta
from typing import Final

from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import UndoableTable
from forewarned.agent.model import Phase
from forewarned.targets.environment import node_name
from forewarned.targets.errors import TargetError
from forewarned.targets.kubernetes import (
    BusyError,
    Cluster,
    Eviction,
    Node,
    Pod,
)
from forewarned.targets.urls import check_url

_LOOK: Final = 1.0
"""Seconds between two looks at the pods, and between two attempts to evict a pod."""
_CONFLICTS: Final = 20
"""How many times a write may lose against another: the node's status changes all the time."""
_NAMED: Final = 5
"""As many pods as a message names."""


class KubernetesHook(UndoableTable, frozen=True, kw_only=True):
    """Cordons the node, evicts its pods as disruption budgets allow, and uncordons it."""

    node: str | None = None
    """The node's name; if not given, `$NODE_NAME` or else the host's name."""
    evict: bool = True
    """Whether to evict the pods, or only cordon the node."""
    evict_unmanaged: bool = False
    """Whether to evict even pods that nothing would create again."""
    keep_namespaces: tuple[str, ...] = ()
    """Namespaces whose pods are not evicted."""
    grace: timedelta | None = None
    """How much time pods have to end; if not given, as much as each asks for."""
    server: str | None = None
    """The API server's URL; if not given, that of the cluster it runs in."""
    token_file: str | None = None
    """A file with the token; in a cluster, by default the service account's."""
    ca_file: str | None = None
    """A file with the certificate of the authority that signed the API server's; in a cluster, by
    default the cluster's own.
    """

    def __post_init__(self) -> None:
        if self.server is not None:
            check_url(self.server)
        if self.node is not None and not self.node:
            raise ValueError("a node's name can't be empty")

    @override
    async def run(self, call: Call) -> str:
        cluster, name = self._cluster(), self._node()
        cordoned = await _cordon(cluster, name, call.sighting.event_id)
        told = f"cordoned {name}" if cordoned else f"{name} was already cordoned"
        if self.evict:
            left = await self._evict(cluster, name, call)
            told += ", evicted its pods"
            if left:
                told += f"; {len(left)} {'stays' if len(left) == 1 else 'stay'}"
        return told

    @override
    async def put_back(self, call: Call) -> str:
        return await _uncordon(self._cluster(), self._node(), call.sighting.event_id)

    @override
    async def check(self) -> list[str]:
        cluster, name = self._cluster(), self._node()
        await cluster.node(name)
        needed = [("patch", "nodes", "")]
        if self.evict:
            needed += [("list", "pods", ""), ("create", "pods", "eviction")]
        return [
            f"the agent's service account may not {verb} {'/'.join(filter(None, (what, part)))}"
            for verb, what, part in needed
            if not await cluster.may(verb, what, part)
        ]

    @override
    def describe(self, phase: Phase) -> str:
        name = self._node()
        if phase is Phase.UNDO:
            return f"uncordon node {name}, if it was cordoned for the event"
        return f"cordon node {name}" + (" and evict its pods" if self.evict else "")

    async def _evict(self, cluster: Cluster, name: str, call: Call) -> list[Pod]:
        """Returns the pods that stay, once all others have gone."""
        accepted: set[str] = set()
        while True:
            try:
                pods = await cluster.pods(name)
                going = [pod for pod in pods if self._goes(pod)]
                if not going:
                    return [pod for pod in pods if not pod.is_finished]
                held = await self._ask_to_go(cluster, going, accepted)
            except BusyError as error:
                # Draining takes minutes: the API's servers may be restarting themselves.
                call.waiting_for(f"Kubernetes: {error}")
            else:
                if held:
                    call.waiting_for(f"a disruption budget to allow the eviction of {_names(held)}")
                else:
                    call.waiting_for(f"pods to end: {_names(going)}")
            await asyncio.sleep(_LOOK)

    async def _ask_to_go(self, cluster: Cluster, going: list[Pod], accepted: set[str]) -> list[Pod]:
        """Returns those that a budget holds back. `accepted` has the uids of evicted pods."""
        grace = None if self.grace is None else int(self.grace.total_seconds())
        held = []
        for pod in going:
            if pod.uid in accepted or pod.is_leaving:
                continue
            match await cluster.evict(pod, grace=grace):
                case Eviction.HELD:
                    held.append(pod)
                case Eviction.ACCEPTED:
                    accepted.add(pod.uid)
                case Eviction.GONE:
                    # The next look at the pods will show.
                    pass
        return held

    def _goes(self, pod: Pod) -> bool:
        if pod.is_mirror or pod.is_finished or pod.controller == "DaemonSet":
            return False
        if pod.namespace in self.keep_namespaces:
            return False
        return pod.controller is not None or self.evict_unmanaged

    def _cluster(self) -> Cluster:
        return Cluster.find(self.server, token_file=self.token_file, ca_file=self.ca_file)

    def _node(self) -> str:
        return self.node or node_name()


async def _cordon(cluster: Cluster, name: str, event_id: str) -> bool:
    """False if an operator has cordoned it, who will also uncordon it."""
    for _ in range(_CONFLICTS):
        node = await cluster.node(name)
        if event_id in node.cordoned_by:
            return True
        if node.is_cordoned and not node.cordoned_by:
            return False
        # Another event's cordon is the agent's own too, and ends with the last of them.
        by = (*_still(node), event_id)
        if await cluster.mark(name, version=node.version, cordoned=True, by=by):
            return True
    raise TargetError(f"node {name} changes too often to be cordoned")


async def _uncordon(cluster: Cluster, name: str, event_id: str) -> str:
    for _ in range(_CONFLICTS):
        node = await cluster.node(name)
        if event_id not in node.cordoned_by:
            return f"{name} was not cordoned for this event, and stays as it is"
        others = tuple(one for one in node.cordoned_by if one != event_id)
        kept = node.is_cordoned and bool(others)
        if await cluster.mark(name, version=node.version, cordoned=kept, by=others):
            return f"{name} stays cordoned for another event" if kept else f"uncordoned {name}"
    raise TargetError(f"node {name} changes too often to be uncordoned")


def _still(node: Node) -> tuple[str, ...]:
    """Events whose cordon is still in place: none, if an operator has uncordoned the node since."""
    return node.cordoned_by if node.is_cordoned else ()


def _names(pods: list[Pod]) -> str:
    named = ", ".join(pod.label for pod in pods[:_NAMED])
    return named if len(pods) <= _NAMED else f"{named} and {len(pods) - _NAMED} more"
