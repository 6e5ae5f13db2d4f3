"""The Kubernetes API, as far as the agent needs it: nodes, pods, evictions and leases.

The only module that knows the names in its answers.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote, urlencode

from forewarned.targets.environment import cluster_address
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Answer, Request, secret, send

TOKEN_FILE: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105  # its path
CA_FILE: Final = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
CORDONED_BY: Final = "forewarned/cordoned-by"
"""The annotation that names the events for which the agent keeps a node cordoned."""

_MERGE: Final = "application/merge-patch+json"
_PAGE: Final = 250
_PASSING: Final = frozenset({429, 502, 503, 504})
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


class BusyError(TargetError):
    """The API could not be asked just now, as while its servers are restarted."""


class Eviction(StrEnum):
    """What came of asking for one."""

    ACCEPTED = "accepted"
    GONE = "gone"
    """The pod is gone; another of its name may run elsewhere."""
    HELD = "held"
    """A disruption budget does not allow it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    version: str
    is_cordoned: bool
    cordoned_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    namespace: str
    name: str
    uid: str
    is_mirror: bool = False
    """Made by the node itself from a file: only its file's removal ends it."""
    is_finished: bool = False
    is_leaving: bool = False
    controller: str | None = None
    """The kind of its controller, which would create it again; None for none."""

    @property
    def label(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The object that clusters keep heartbeats in."""

    name: str = ""
    holder: str = ""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    transitions: int
    """A number that only the holder changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where the API is, and how the agent authenticates itself to it."""

    url: str
    token_file: str | None
    ca_file: str | None

    @classmethod
    def find(
        cls, server: str | None, *, token_file: str | None = None, ca_file: str | None = None
    ) -> "Cluster":
        """That of `server`, or without one that of the pod the agent runs in."""
        if server:
            return cls(url=server, token_file=token_file, ca_file=ca_file)
        url = cluster_address()
        if url is None:
            raise TargetError("not running in a cluster: set server to the API server's URL")
        return cls(url=url, token_file=token_file or TOKEN_FILE, ca_file=ca_file or CA_FILE)

    async def node(self, name: str) -> Node:
        answer = await self._ask("GET", f"/api/v1/nodes/{quote(name, safe='')}")
        if answer.status == 404:
            raise TargetError(f"Kubernetes has no node {name}")
        told = _good(answer)
        annotations = _table(_table(told, "metadata"), "annotations")
        return Node(
            version=str(_table(told, "metadata").get("resourceVersion", "")),
            is_cordoned=_table(told, "spec").get("unschedulable") is True,
            cordoned_by=tuple(str(annotations.get(CORDONED_BY, "")).split()),
        )

    async def mark(self, name: str, *, version: str, cordoned: bool, by: tuple[str, ...]) -> bool:
        """Cordon or uncordon, and say for whom, in one step. False where the node has changed."""
        patch = {
            "metadata": {
                "resourceVersion": version,
                "annotations": {CORDONED_BY: " ".join(by) or None},
            },
            "spec": {"unschedulable": True if cordoned else None},
        }
        answer = await self._ask(
            "PATCH",
            f"/api/v1/nodes/{quote(name, safe='')}",
            patch,
            content_type=_MERGE,
        )
        if answer.status == 409:
            return False
        _good(answer)
        return True

    async def pods(self, node: str) -> list[Pod]:
        found: list[Pod] = []
        more = ""
        while True:
            asked = {"fieldSelector": f"spec.nodeName={node}", "limit": str(_PAGE)}
            if more:
                asked["continue"] = more
            told = _good(await self._ask("GET", f"/api/v1/pods?{urlencode(asked)}"))
            found += [_pod(item) for item in _items(told)]
            more = str(_table(told, "metadata").get("continue") or "")
            if not more:
                return found

    async def evict(self, pod: Pod, *, grace: int | None) -> Eviction:
        # The uid: a StatefulSet's pod may by now run on another node, under the same name.
        options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        answer = await self._ask(
            "POST",
            f"/api/v1/namespaces/{quote(pod.namespace, safe='')}"
            f"/pods/{quote(pod.name, safe='')}/eviction",
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod.name, "namespace": pod.namespace},
                "deleteOptions": options,
            },
        )
        match answer.status:
            case 404 | 409:
                return Eviction.GONE
            case 429:
                return Eviction.HELD
            case _:
                _good(answer)
                return Eviction.ACCEPTED

    async def may(self, verb: str, resource: str, subresource: str = "") -> bool:
        attributes = {"verb": verb, "resource": resource}
        if subresource:
            attributes["subresource"] = subresource
        answer = await self._ask(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            },
        )
        return _table(_good(answer), "status").get("allowed") is True

    async def write_lease(self, namespace: str, lease: Lease) -> None:
        """Create or replace it."""
        leases = _leases(namespace)
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": lease.name,
                "labels": dict(lease.labels),
                "annotations": dict(lease.annotations),
            },
            "spec": {"holderIdentity": lease.holder, "leaseTransitions": lease.transitions},
        }
        answer = await self._ask("PATCH", f"{leases}/{lease.name}", body, content_type=_MERGE)
        if answer.status == 404:
            answer = await self._ask("POST", leases, body)
        # Another request of ours was first: the next one is written over it.
        if answer.status != 409:
            _good(answer)

    async def leases(self, namespace: str, *, label: str, value: str) -> list[Lease]:
        query = urlencode({"labelSelector": f"{label}={value}"})
        told = _good(await self._ask("GET", f"{_leases(namespace)}?{query}"))
        return [_lease(item) for item in _items(told)]

    async def delete_lease(self, namespace: str, name: str) -> None:
        answer = await self._ask("DELETE", f"{_leases(namespace)}/{name}")
        if answer.status != 404:
            _good(answer)

    async def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        content_type: str = "application/json",
    ) -> Answer:
        headers = {"Accept": "application/json"}
        if self.token_file is not None:
            # Read each time: the cluster replaces the file every hour.
            headers["Authorization"] = f"Bearer {secret(self.token_file)}"
        if body is not None:
            headers["Content-Type"] = content_type
        asked = Request(
            method=method,
            url=f"{self.url.rstrip('/')}{path}",
            headers=headers,
            body=None if body is None else json.dumps(body).encode(),
        )
        try:
            return await send(asked, ca_file=self.ca_file)
        except TargetError as error:
            raise BusyError(str(error)) from error


# Any, here and below: what JSON is made of.
def _pod(told: dict[str, Any]) -> Pod:
    metadata = _table(told, "metadata")
    owners = metadata.get("ownerReferences") or []
    controllers = [
        str(owner.get("kind"))
        for owner in owners
        if isinstance(owner, dict) and owner.get("controller") is True
    ]
    return Pod(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        is_mirror="kubernetes.io/config.mirror" in _table(metadata, "annotations"),
        is_finished=_table(told, "status").get("phase") in _FINISHED,
        is_leaving=metadata.get("deletionTimestamp") is not None,
        controller=controllers[0] if controllers else None,
    )


def _lease(told: dict[str, Any]) -> Lease:
    metadata = _table(told, "metadata")
    transitions = _table(told, "spec").get("leaseTransitions")
    return Lease(
        labels=_table(metadata, "labels"),
        annotations=_table(metadata, "annotations"),
        transitions=transitions if isinstance(transitions, int) else 0,
    )


def _leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"


def _good(answer: Answer) -> dict[str, Any]:
    said = answer.json() if 200 <= answer.status < 300 else None
    if isinstance(said, dict):
        return said
    failure = BusyError if answer.status in _PASSING else TargetError
    raise failure(f"Kubernetes answered {answer.status}: {_reason(answer)}")


def _reason(answer: Answer) -> str:
    """The message of the Status that Kubernetes answers with."""
    try:
        said = answer.json()
    except TargetError:
        return answer.excerpt()
    return str(said.get("message", "")) if isinstance(said, dict) else answer.excerpt()


def _items(told: dict[str, Any]) -> list[dict[str, Any]]:
    items = told.get("items") or []
    if not isinstance(items, list):
        raise TargetError("Kubernetes did not return a list")
    return [item for item in items if isinstance(item, dict)]


def _table(told: dict[str, Any], name: str) -> dict[str, Any]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}
