"""A stand-in for the Kubernetes API: nodes, pods, evictions, budgets, and who may do what.

It keeps the rules that a client has to live with: every change of an object gives it a new resource
version, a change that names an old one is a conflict; an evicted pod stays for as long as it takes
to end; a budget that has no disruption left answers 429. The official client is held against it in
test_kubernetes_api.py.
"""

import copy
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.agent.hooks.http_service import Asked, Reply, Service, answering

# Any, here and below: Kubernetes' objects are JSON, and tests say what they expect of it.
Object = dict[str, Any]

TOKEN: Final = "token-of-the-agent"
_REASONS: Final = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    415: "UnsupportedMediaType",
    429: "TooManyRequests",
    500: "InternalError",
}


@dataclass(slots=True)
class Budget:
    """A PodDisruptionBudget: which pods of its namespace, and how many may go now."""

    namespace: str
    app: str
    allowed: int


@dataclass(slots=True)
class KubernetesApi:
    nodes: dict[str, Object] = field(default_factory=dict)
    pods: dict[tuple[str, str], Object] = field(default_factory=dict)
    budgets: list[Budget] = field(default_factory=list)
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    """Verb and resource."""
    endless: set[str] = field(default_factory=set)
    """Names of pods that never end."""
    before_patch: Callable[[Object], None] | None = None
    """What somebody else does to a node just before a change of ours."""
    _version: int = 100
    _uids: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # --- what tests set up -----------------------------------------------------------------------

    def add_node(self, name: str) -> None:
        self.nodes[name] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": self._uid(), "annotations": {"other": "stays"}},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"nodeInfo": None},
        }
        self.touch(self.nodes[name])

    def add_pod(
        self,
        name: str,
        *,
        namespace: str = "default",
        node: str = "node-1",
        owner: str | None = "ReplicaSet",
        phase: str = "Running",
        annotations: dict[str, str] | None = None,
    ) -> None:
        metadata: Object = {
            "name": name,
            "namespace": namespace,
            "uid": self._uid(),
            "labels": {"app": name.partition("-")[0]},
            "annotations": annotations or {},
        }
        if owner is not None:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": "apps/v1",
                    "kind": owner,
                    "name": name.rpartition("-")[0],
                    "uid": self._uid(),
                    "controller": True,
                }
            ]
        self.pods[namespace, name] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "app"}]},
            "status": {"phase": phase},
        }
        self.touch(self.pods[namespace, name])

    def pods_on(self, node: str) -> list[str]:
        return sorted(
            name for (_, name), pod in self.pods.items() if pod["spec"]["nodeName"] == node
        )

    def touch(self, thing: Object) -> None:
        """Every change of an object gives it a version that no object has had."""
        with self._lock:
            self._version += 1
            thing["metadata"]["resourceVersion"] = str(self._version)

    @contextmanager
    def serving(self, tls: ssl.SSLContext | None = None) -> Iterator[Service]:
        with answering(self.answer, tls) as service:
            yield service

    # --- what it answers -------------------------------------------------------------------------

    def answer(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return _status(401, "Unauthorized")
        path = urlsplit(asked.path).path.strip("/").split("/")
        with self._lock:
            match asked.method, *path:
                case "GET", "api", "v1", "nodes", name if name in self.nodes:
                    return Reply(json=copy.deepcopy(self.nodes[name]))
                case "PATCH", "api", "v1", "nodes", name if name in self.nodes:
                    return self._patch(self.nodes[name], asked)
                case "PUT", "api", "v1", "nodes", name if name in self.nodes:
                    return self._replace(name, asked)
                case "GET", "api", "v1", "pods":
                    return self._list(parse_qs(urlsplit(asked.path).query))
                case "POST", "api", "v1", "namespaces", namespace, "pods", name, "eviction":
                    return self._evict(namespace, name, asked.json)
                case "POST", "apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews":
                    return self._review(asked.json)
                case _:
                    return _status(404, f"the server could not find {asked.path}")

    def _patch(self, node: Object, asked: Asked) -> Reply:
        if ("patch", "nodes") in self.forbidden:
            return _status(403, 'nodes "node-1" is forbidden: User "agent" cannot patch resource')
        if asked.headers.get("content-type") not in {
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        }:
            return _status(415, "the body of the request was in an unknown format")
        if self.before_patch is not None:
            self.before_patch(node)
        patch = asked.json
        given = patch.get("metadata", {}).pop("resourceVersion", None)
        if given is not None and given != node["metadata"]["resourceVersion"]:
            return _conflict(node)
        changed = copy.deepcopy(node)
        _merge(changed, patch)
        if changed != node:
            node.clear()
            node.update(changed)
            self.touch(node)
        return Reply(json=copy.deepcopy(node))

    def _replace(self, name: str, asked: Asked) -> Reply:
        node = self.nodes[name]
        given = asked.json["metadata"].get("resourceVersion")
        if given and given != node["metadata"]["resourceVersion"]:
            return _conflict(node)
        self.nodes[name] = asked.json
        self.touch(self.nodes[name])
        return Reply(json=copy.deepcopy(self.nodes[name]))

    def _list(self, query: dict[str, list[str]]) -> Reply:
        if ("list", "pods") in self.forbidden:
            return _status(403, "pods is forbidden")
        field_name, _, wanted = query.get("fieldSelector", [""])[0].partition("=")
        assert field_name in {"", "spec.nodeName"}, field_name
        found = [
            copy.deepcopy(pod)
            for _, pod in sorted(self.pods.items())
            if not wanted or pod["spec"]["nodeName"] == wanted
        ]
        begin = int(query.get("continue", ["0"])[0])
        end = begin + int(query.get("limit", [str(len(found))])[0])
        metadata = {"resourceVersion": str(self._version)}
        if end < len(found):
            metadata["continue"] = str(end)
        else:
            self._end_those_that_leave()
        return Reply(
            json={
                "apiVersion": "v1",
                "kind": "PodList",
                "metadata": metadata,
                "items": found[begin:end],
            }
        )

    def _end_those_that_leave(self) -> None:
        """A pod that was evicted is seen once more as it ends, and then it has gone."""
        for key, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"] and key[1] not in self.endless:
                del self.pods[key]

    def _evict(self, namespace: str, name: str, eviction: Object) -> Reply:
        assert eviction["apiVersion"] == "policy/v1"
        assert eviction["metadata"]["name"] == name
        pod = self.pods.get((namespace, name))
        if pod is None:
            return _status(404, f'pods "{name}" not found')
        options = eviction.get("deleteOptions") or {}
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted is not None and wanted != pod["metadata"]["uid"]:
            return _status(409, f"Precondition failed: UID in precondition: {wanted}")
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]:
            budgets = [
                budget
                for budget in self.budgets
                if (budget.namespace, budget.app) == (namespace, pod["metadata"]["labels"]["app"])
            ]
            if len(budgets) > 1:
                return _status(500, "This pod has more than one PodDisruptionBudget")
            for budget in budgets:
                if budget.allowed < 1:
                    return _status(
                        429, "Cannot evict pod as it would violate the pod's disruption budget."
                    )
                budget.allowed -= 1
        if "deletionTimestamp" not in pod["metadata"]:
            pod["metadata"]["deletionTimestamp"] = "2026-01-05T12:00:00Z"
            pod["metadata"]["deletionGracePeriodSeconds"] = options.get("gracePeriodSeconds", 30)
            self.touch(pod)
        return Reply(
            status=201,
            json={"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success"},
        )

    def _review(self, review: Object) -> Reply:
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = (asked["verb"], resource) not in self.forbidden
        return Reply(status=201, json={**review, "status": {"allowed": allowed}})

    def _uid(self) -> str:
        self._uids += 1
        return f"00000000-0000-4000-8000-{self._uids:012d}"


def _merge(thing: Object, patch: Object) -> None:
    """RFC 7396."""
    for name, value in patch.items():
        if value is None:
            thing.pop(name, None)
        elif isinstance(value, dict):
            found = thing.setdefault(name, {})
            _merge(found, value)
        else:
            thing[name] = value


def _conflict(thing: Object) -> Reply:
    name = thing["metadata"]["name"]
    return _status(
        409,
        f'Operation cannot be fulfilled on nodes "{name}": the object has been modified;'
        " please apply your changes to the latest version and try again",
    )


def _status(code: int, message: str) -> Reply:
    return Reply(
        status=code,
        json={
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": _REASONS[code],
            "code": code,
        },
    )
