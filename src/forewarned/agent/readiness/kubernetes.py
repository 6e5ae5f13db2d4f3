"""Readiness through leases of a Kubernetes cluster: one for each event and VM.

Agents are commonly allowed to write leases. The event and the VM are in annotations, whose text is
free; labels only serve to find the leases of an event.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

from typing_extensions import override

from forewarned.agent.readiness.ports import Readiness, ReadinessError, ReadinessReport, Standing
from forewarned.targets.errors import TargetError
from forewarned.targets.kubernetes import Cluster, Lease

_PATIENCE: Final = 5.0
_LABEL: Final = "forewarned/event"
_RESOURCE: Final = "forewarned/resource"
_STANDING: Final = "forewarned/standing"


class LeaseReports(Readiness):
    def __init__(self, *, server: str, namespace: str, credentials: Path) -> None:
        self._server = server
        self._namespace = namespace
        self._credentials = credentials

    @override
    async def report(self, event_id: str, me: str, report: ReadinessReport) -> None:
        lease = Lease(
            name=lease_name(event_id, me),
            holder=me,
            labels={_LABEL: _label(event_id)},
            annotations={_RESOURCE: me, _STANDING: str(report.standing)},
            transitions=report.beat,
        )
        async with self._cluster() as cluster:
            await cluster.write_lease(self._namespace, lease)

    @override
    async def reports(self, event_id: str) -> Mapping[str, ReadinessReport]:
        async with self._cluster() as cluster:
            leases = await cluster.leases(self._namespace, label=_LABEL, value=_label(event_id))
        return dict(read for lease in leases if (read := _read(lease)) is not None)

    @override
    async def forget(self, event_id: str, me: str) -> None:
        async with self._cluster() as cluster:
            await cluster.delete_lease(self._namespace, lease_name(event_id, me))

    @contextlib.asynccontextmanager
    async def _cluster(self) -> AsyncIterator[Cluster]:
        token, authority = self._credentials / "token", self._credentials / "ca.crt"
        try:
            async with asyncio.timeout(_PATIENCE):
                yield Cluster.find(self._server, token_file=str(token), ca_file=str(authority))
        except TimeoutError as error:
            raise ReadinessError("Kubernetes did not answer in time") from error
        except TargetError as error:
            raise ReadinessError(str(error)) from error


def lease_name(event_id: str, me: str) -> str:
    """Names of VMs and of leases have different letters, so that it can't be the VM's own."""
    both = f"{event_id.lower()}\n{me.lower()}"
    return f"forewarned-{hashlib.sha256(both.encode()).hexdigest()[:32]}"


def _label(event_id: str) -> str:
    # Ids are GUIDs, which a label may be; whatever else a service sends may be anything.
    return hashlib.sha256(event_id.lower().encode()).hexdigest()[:32]


def _read(lease: Lease) -> tuple[str, ReadinessReport] | None:
    try:
        standing = Standing(lease.annotations[_STANDING])
        return lease.annotations[_RESOURCE], ReadinessReport(
            standing=standing, beat=lease.transitions
        )
    except (KeyError, ValueError):
        return None
