"""Having Nova do something to a VM, and waiting until it has.

Each operation returns the id of Nova's record of it, and looks at the VM first: an actuator that
died may have left it at any step.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from forewarned.actuators.driver import (
    DriverError,
    Power,
    Progress,
    RefusedError,
    TryLaterError,
    after_effect,
)
from forewarned.actuators.openstack.compute import Compute
from forewarned.actuators.openstack.failures import NotFoundError
from forewarned.actuators.openstack.sightings import MOVED, awaits_confirmation, power
from forewarned.actuators.openstack.wire import MigrationRecord, Server

_ABORTED: Final = timedelta(seconds=30)
"""How long an aborted migration may take to end."""


class Operations:
    def __init__(self, compute: Compute, *, pause: timedelta) -> None:
        """`pause` is between two looks at a VM."""
        self._compute = compute
        self._pause = pause.total_seconds()

    async def migrate_live(self, server: Server, target: str | None, progress: Progress) -> str:
        """`target` is None where Nova chooses the host.

        Raises RefusedError if the VM was seen to run on its source afterwards.
        """
        arguments = {"host": target, "block_migration": "auto"}
        request_id = await self._compute.ask(server, "os-migrateLive", arguments)
        with after_effect():
            seen = await self.until(server, is_idle, progress)
            if seen is not None and seen.host != server.host:
                return request_id
            error = f"the live migration has failed: {await self._cause(server, request_id)}"
        if seen is not None and power(seen) is power(server):
            raise RefusedError(error)
        raise DriverError(error)

    async def move_cold(self, server: Server, target: str | None, progress: Progress) -> str:
        if not awaits_confirmation(server, await self.newest_migration(server)):
            arguments = None if target is None else {"host": target}
            request_id = await self._compute.ask(server, "migrate", arguments)
            with after_effect():
                await self._finish_moving(server, request_id, progress)
        with after_effect():
            return await self.confirm(server, progress)

    async def _finish_moving(self, server: Server, request_id: str, progress: Progress) -> None:
        seen = await self.until(server, is_idle, progress)
        migration = await self.newest_migration(server)
        if seen is None or not awaits_confirmation(seen, migration):
            why = await self._cause(server, request_id)
            raise DriverError(f"the cold migration has failed: {why}")
        progress(f"moved to {seen.host}")

    async def confirm(self, server: Server, progress: Progress) -> str:
        """Have Nova give up the VM's place on the host it came from."""
        request_id = await self._compute.ask(server, "confirmResize")
        await self.until(server, lambda seen: seen.vm_state != MOVED and is_idle(seen), progress)
        return request_id

    async def end_migration(self, server: Server) -> None:
        """End a live migration, if there is one. Returns when it has ended, or after a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ABORTED.total_seconds()):
                while (seen := await self._compute.look(server.id)) is not None:
                    if seen.task_state != "migrating":
                        return
                    await self._abort_migration(server)
                    await asyncio.sleep(self._pause)

    async def _abort_migration(self, server: Server) -> None:
        migration = await self.newest_migration(server)
        if migration is not None:
            # It may not have begun, be over already, or past the point where it can be ended.
            with contextlib.suppress(RefusedError, TryLaterError):
                await self._compute.abort_migration(server, migration)

    async def reboot(self, server: Server, kind: str, progress: Progress) -> str:
        """`kind` is SOFT or HARD."""
        request_id = await self._compute.ask(server, "reboot", {"type": kind})
        with after_effect():
            await self._finish(server, request_id, progress)
        return request_id

    async def stop(self, server: Server, progress: Progress) -> str:
        if power(server) is Power.OFF:
            return ""
        request_id = await self._compute.ask(server, "os-stop")
        with after_effect():
            await self._finish(server, request_id, progress)
        return request_id

    async def delete(self, server: Server, progress: Progress) -> str:
        request_id = await self._compute.delete(server)
        with after_effect():
            await self.until(server, lambda seen: power(seen) is Power.GONE, progress)
        return request_id

    async def newest_migration(self, server: Server) -> MigrationRecord | None:
        migrations = await self._compute.migrations(server)
        return migrations[0] if migrations else None

    async def until(
        self, server: Server, is_ready: Callable[[Server], bool], progress: Progress
    ) -> Server | None:
        """Look at the VM until then. Returns None if Nova no longer has it."""
        told = ""
        while (seen := await self._compute.look(server.id)) is not None and not is_ready(seen):
            percent = f", {seen.progress}%" if seen.progress else ""
            state = f"{seen.task_state or seen.vm_state}{percent}"
            if state != told:
                progress(state)
                told = state
            await asyncio.sleep(self._pause)
        return seen

    async def _finish(self, server: Server, request_id: str, progress: Progress) -> None:
        """Wait until Nova is done with the VM. Raises DriverError if the action has failed."""
        await self.until(server, is_idle, progress)
        details = await self._compute.action(server, request_id)
        if details.message == "Error":
            raise DriverError(await self._cause(server, request_id))

    async def _cause(self, server: Server, request_id: str) -> str:
        """Why an action has failed, as Nova recorded it."""
        try:
            events = (await self._compute.action(server, request_id)).events
        except NotFoundError:
            return "Nova has no record of it"
        failed = [each for each in events if each.result == "Error"]
        reasons = [each.details or each.event for each in failed]
        migration = await self.newest_migration(server)
        state = "" if migration is None else f"Nova's record of it says {migration.status}"
        return reasons[0] if reasons else state or "Nova gives no reason"


def is_idle(server: Server) -> bool:
    """Whether Nova is doing nothing to it."""
    return server.task_state is None
