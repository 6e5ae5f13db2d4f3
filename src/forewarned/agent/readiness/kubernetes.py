"""Readiness through leases of a Kubernetes cluster: one for each event and VM.

A lease is the object that clusters keep heartbeats in, and the one that agents are commonly
allowed to write. The event and the VM are in annotations, whose text is free; labels only find
the leases of an event.
"""

import contextlib
import hashlib
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import httpx2
import msgspec
from typing_extensions import override

from forewarned.agent.hooks.surroundings import cluster_address
from forewarned.agent.readiness.ports import Readiness, ReadinessError, Report, Standing

_PATIENCE: Final = httpx2.Timeout(5)
_LABEL: Final = "forewarned/event"
_RESOURCE: Final = "forewarned/resource"
_STANDING: Final = "forewarned/standing"
_LONGEST_ANSWER: Final = 4 * 1024 * 1024
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class _Metadata(msgspec.Struct, frozen=True, kw_only=True):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Spec(msgspec.Struct, frozen=True, kw_only=True):
    transitions: int | None = msgspec.field(name="leaseTransitions", default=None)


class _Lease(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


class _Leases(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[_Lease, ...] = ()


class LeasesOfReports(Readiness):
    def __init__(self, *, server: str, namespace: str, credentials: Path) -> None:
        self._server = server
        self._namespace = namespace
        self._credentials = credentials

    @override
    async def report(self, event_id: str, me: str, report: Report) -> None:
        name = lease_name(event_id, me)
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "labels": {_LABEL: _label(event_id)},
                "annotations": {_RESOURCE: me, _STANDING: str(report.standing)},
            },
            # The field that a lease has for a number that only its holder moves.
            "spec": {"holderIdentity": me, "leaseTransitions": report.beat},
        }
        async with self._asking() as client:
            answer = await client.patch(
                f"{self._leases}/{name}",
                content=msgspec.json.encode(body),
                headers={"Content-Type": "application/merge-patch+json"},
            )
            if answer.status_code == _NOT_FOUND:
                answer = await client.post(self._leases, json=body)
            # Another request of ours was first: the next beat is written over it.
            if answer.status_code != _CONFLICT:
                _check(answer)

    @override
    async def reports(self, event_id: str) -> Mapping[str, Report]:
        async with self._asking() as client:
            selector = f"{_LABEL}={_label(event_id)}"
            answer = await client.get(self._leases, params={"labelSelector": selector})
            _check(answer)
        if len(answer.content) > _LONGEST_ANSWER:
            raise ReadinessError("the API server's answer is too long to be a list of leases")
        try:
            leases = msgspec.json.decode(answer.content, type=_Leases)
        except msgspec.MsgspecError as error:
            raise ReadinessError(
                f"the API server's answer is no list of leases: {error}"
            ) from error
        return dict(read for lease in leases.items if (read := _read(lease)) is not None)

    @override
    async def forget(self, event_id: str, me: str) -> None:
        async with self._asking() as client:
            answer = await client.delete(f"{self._leases}/{lease_name(event_id, me)}")
            if answer.status_code != _NOT_FOUND:
                _check(answer)

    @property
    def _leases(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"

    @contextlib.asynccontextmanager
    async def _asking(self) -> AsyncIterator[httpx2.AsyncClient]:
        try:
            # Anew each time: the cluster replaces the token's file every hour.
            token = (self._credentials / "token").read_text(encoding="ascii").strip()
            authority = self._credentials / "ca.crt"
            url = self._server or cluster_address()
            if url is None:
                raise ReadinessError("this is no pod of a cluster: give the API server's URL")
            # Plain HTTP needs no certificates, and loading them takes longer than a request.
            trust = (
                ssl.create_default_context(cafile=str(authority))
                if url.startswith("https:")
                else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            )
            async with httpx2.AsyncClient(
                base_url=url,
                headers={"Authorization": f"Bearer {token}"},
                trust_env=False,
                follow_redirects=False,
                timeout=_PATIENCE,
                verify=trust,
            ) as client:
                yield client
        except httpx2.HTTPError as error:
            raise ReadinessError(f"the API server: {str(error) or type(error).__name__}") from error
        except (OSError, ValueError) as error:
            raise ReadinessError(f"the credentials in {self._credentials}: {error}") from error


def lease_name(event_id: str, me: str) -> str:
    """Names of VMs and of leases have different letters, so that it can't be the VM's own."""
    both = f"{event_id.lower()}\n{me.lower()}"
    return f"forewarned-{hashlib.sha256(both.encode()).hexdigest()[:32]}"


def _label(event_id: str) -> str:
    # Ids are GUIDs, which a label may be; whatever else a service sends may be anything.
    return hashlib.sha256(event_id.lower().encode()).hexdigest()[:32]


def _read(lease: _Lease) -> tuple[str, Report] | None:
    annotations = lease.metadata.annotations
    try:
        standing = Standing(annotations[_STANDING])
        return annotations[_RESOURCE], Report(standing=standing, beat=lease.spec.transitions or 0)
    except (KeyError, ValueError):
        return None


def _check(answer: httpx2.Response) -> None:
    if not answer.is_success:
        raise ReadinessError(f"the API server answered {answer.status_code}: {answer.text[:200]}")
