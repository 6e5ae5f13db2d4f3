"""What is asked of Nova's API, each question a method."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from forewarned.actuators.driver import DriverError, Vm
from forewarned.actuators.openstack.failures import NotFoundError
from forewarned.actuators.openstack.session import Session
from forewarned.actuators.openstack.wire import (
    ActionBody,
    ActionDetails,
    ComputeService,
    InstanceAction,
    InstanceActionsBody,
    MigrationRecord,
    MigrationsBody,
    Server,
    ServerBody,
    ServerGroup,
    ServerGroupsBody,
    ServersBody,
    ServicesBody,
)

_MOST_PAGES: Final = 10_000


class Compute:
    """All of its methods may raise DriverError, and NotFoundError where there is no such thing."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # --- VMs -------------------------------------------------------------------------------------

    async def find(self, vm: Vm) -> Server | None:
        """None if Nova has no such VM. One whose id the fleet does not know is found by name."""
        if not vm.vm_id:
            return await self._find_by_name(vm.name)
        return await self.look(vm.vm_id)

    async def look(self, server_id: str) -> Server | None:
        """None if Nova has no such VM."""
        try:
            return (await self._session.get(_path(server_id), ServerBody)).server
        except NotFoundError:
            return None

    async def _find_by_name(self, name: str) -> Server | None:
        # Nova takes a regular expression, and not of Python's kind: so the names are compared here.
        servers = [each for each in await self.servers() if each.name == name]
        if len(servers) > 1:
            raise DriverError(
                f"{len(servers)} VMs of this cloud are called {name}: set vm_id of each in the"
                " fleet"
            )
        return servers[0] if servers else None

    async def servers(self, *, host: str | None = None) -> list[Server]:
        """Of all projects, by default on all hosts."""
        query = {"all_tenants": "1"} if host is None else {"all_tenants": "1", "host": host}
        path = f"/servers/detail?{urlencode(query)}"
        found: dict[str, Server] = {}
        for _ in range(_MOST_PAGES):
            page = await self._session.get(path, ServersBody)
            found |= {server.id: server for server in page.servers}
            following = [link.href for link in page.servers_links if link.rel == "next"]
            if not following:
                return list(found.values())
            # The address in the link may be one that only Nova's own network has.
            path = f"/servers/detail?{urlsplit(following[0]).query}"
        raise DriverError(f"Nova's list of VMs has more than {_MOST_PAGES} pages")

    async def ask(self, server: Server, action: str, arguments: object = None) -> str:
        """Have something done to a VM. Returns the id under which Nova keeps a record of it."""
        answer = await self._session.request(
            "POST", _path(server.id, "action"), {action: arguments}
        )
        return answer.headers.get("x-openstack-request-id", "")

    async def delete(self, server: Server) -> str:
        answer = await self._session.request("DELETE", _path(server.id))
        return answer.headers.get("x-openstack-request-id", "")

    async def write_metadata(self, server: Server, items: Mapping[str, str]) -> None:
        """Items of other names stay as they are."""
        await self._session.request("POST", _path(server.id, "metadata"), {"metadata": items})

    # --- what Nova has recorded ------------------------------------------------------------------

    async def actions(self, server: Server) -> tuple[InstanceAction, ...]:
        """The newest first."""
        path = _path(server.id, "os-instance-actions")
        return (await self._session.get(path, InstanceActionsBody)).instance_actions

    async def action(self, server: Server, request_id: str) -> ActionDetails:
        path = _path(server.id, f"os-instance-actions/{quote(request_id, safe='')}")
        return (await self._session.get(path, ActionBody)).instance_action

    async def migrations(self, server: Server) -> list[MigrationRecord]:
        """The newest first; those that are over too."""
        query = urlencode({"instance_uuid": server.id})
        body = await self._session.get(f"/os-migrations?{query}", MigrationsBody)
        return sorted(body.migrations, key=lambda each: each.id, reverse=True)

    async def abort_migration(self, server: Server, migration: MigrationRecord) -> None:
        await self._session.request("DELETE", _path(server.id, f"migrations/{migration.id}"))

    # --- hosts -----------------------------------------------------------------------------------

    async def services(self) -> tuple[ComputeService, ...]:
        """Of every host that VMs run on."""
        path = "/os-services?binary=nova-compute"
        return (await self._session.get(path, ServicesBody)).services

    async def change_service(self, service: ComputeService, change: Mapping[str, str]) -> None:
        await self._session.request("PUT", f"/os-services/{quote(service.id, safe='')}", change)

    async def server_groups(self) -> tuple[ServerGroup, ...]:
        """Of all projects."""
        path = "/os-server-groups?all_projects=true"
        return (await self._session.get(path, ServerGroupsBody)).server_groups


def _path(server_id: str, below: str = "") -> str:
    return f"/servers/{quote(server_id, safe='')}/{below}".rstrip("/")
