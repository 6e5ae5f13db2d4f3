"""The OpenStack driver: carries events out on the VMs of a cloud, by Nova's API."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final, assert_never

from typing_extensions import override

from forewarned.actuators.driver import (
    Action,
    Driver,
    Effect,
    NoEffectError,
    Power,
    Progress,
    RefusedError,
    Sighting,
    Verdict,
    Vm,
    after_effect,
    survey_ways,
)
from forewarned.actuators.openstack.compute import Compute
from forewarned.actuators.openstack.hosts import NovaHosts, find_targets, source_objection
from forewarned.actuators.openstack.inventory import list_cloud
from forewarned.actuators.openstack.operations import Operations
from forewarned.actuators.openstack.session import Cloud, Session
from forewarned.actuators.openstack.sightings import (
    INTENT,
    ISSUED,
    MOVED,
    awaits_confirmation,
    power,
    sighting,
)
from forewarned.actuators.openstack.vocabulary import EFFECTS, Word
from forewarned.actuators.openstack.wire import Server
from forewarned.config.durations import format_duration
from forewarned.service.sources.listing import Listing

_PAUSE: Final = timedelta(seconds=1)
"""Between two looks at a VM that Nova is busy with."""


class OpenStackDriver(Driver):
    def __init__(
        self, cloud: Cloud, *, hosts: Collection[str] = (), pause: timedelta = _PAUSE
    ) -> None:
        """`hosts` has patterns of those that it may cordon; all if there is none."""
        self._compute = Compute(Session(cloud))
        self._operations = Operations(self._compute, pause=pause)
        self._hosts = NovaHosts(self._compute, hosts)

    async def list_vms(self) -> Listing:
        """Those of all projects."""
        return await list_cloud(self._compute)

    @override
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        server = await self._compute.find(vm)
        if server is None:
            return Verdict(possible=False, reason=_no_such(vm))
        return await survey_ways(action, lambda word: self._verdict(Word(word), server, action))

    async def _verdict(self, word: Word, server: Server, action: Action) -> Verdict:
        """Nova has no dry run: what its scheduler says is known only when it is asked to move."""
        reason = _objection(word, server)
        if reason is not None:
            return Verdict(possible=False, reason=reason)
        source = server.host or ""
        if EFFECTS[word] is not Effect.MOVES:
            return Verdict(possible=True, reason=f"'{word}' on {source}")
        services = await self._compute.services()
        targets = find_targets(services, source=source, wanted=action.target)
        reason = source_objection(services, source=source)
        if reason is not None or isinstance(targets, str):
            return Verdict(possible=False, reason=reason or str(targets))
        if len(targets) > 1:
            reason = f"'{word}' to a host of Nova's choice: {', '.join(sorted(targets))}"
            return Verdict(possible=True, reason=reason)
        return Verdict(possible=True, reason=f"'{word}' to {targets[0]}", target=targets[0])

    @override
    async def observe(self, vm: Vm) -> Sighting:
        server = await self._compute.find(vm)
        if server is None:
            return Sighting(power=Power.GONE)
        actions = await self._compute.actions(server)
        migration = None
        if server.vm_state == MOVED:
            migration = await self._operations.newest_migration(server)
        return sighting(server, actions, migration)

    @override
    async def mark(self, vm: Vm, key: str) -> None:
        server, mark = await self._found(vm), {INTENT: key, ISSUED: ""}
        # A VM that was moved and not confirmed takes no metadata; an earlier attempt has marked it.
        if not mark.items() <= server.metadata.items():
            await self._compute.write_metadata(server, mark)

    @override
    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        try:
            request_id = await self._carry_out(Word(action.do), action, vm, progress)
        except (RefusedError, NoEffectError) as error:
            if action.otherwise is None:
                raise
            progress(f"{error}; {action.otherwise} instead")
            patiently = replace(action, patience=None)
            request_id = await self._carry_out(Word(action.otherwise), patiently, vm, progress)
        with after_effect():
            await self._mark_issued(vm, key, request_id)

    async def _mark_issued(self, vm: Vm, key: str, request_id: str) -> None:
        server = await self._compute.find(vm)
        if server is not None and power(server) is not Power.GONE:
            await self._compute.write_metadata(server, {INTENT: key, ISSUED: request_id})

    async def _carry_out(self, word: Word, action: Action, vm: Vm, progress: Progress) -> str:
        """Raises RefusedError if nothing was done, NoEffectError if the patience is over."""
        server, patience = await self._found(vm), action.patience
        limit = None if patience is None or word is Word.COLD_MOVE else patience.total_seconds()
        try:
            async with asyncio.timeout(limit):
                return await self._carry_out_now(word, server, action.target, progress)
        except TimeoutError as error:
            with after_effect():
                await self._operations.end_migration(server)
                seen = await self._found(vm)
            if word is Word.LIVE_MIGRATE and seen.host != server.host:
                # It could no longer be ended.
                return ""
            waited = format_duration(patience or timedelta(0))
            raise NoEffectError(f"{word} had no effect within {waited}") from error

    async def _carry_out_now(
        self, word: Word, server: Server, target: str | None, progress: Progress
    ) -> str:
        match word:
            case Word.LIVE_MIGRATE:
                return await self._operations.migrate_live(server, target, progress)
            case Word.COLD_MOVE:
                return await self._operations.move_cold(server, target, progress)
            case Word.SOFT_REBOOT:
                return await self._operations.reboot(server, "SOFT", progress)
            case Word.HARD_REBOOT:
                return await self._operations.reboot(server, "HARD", progress)
            case Word.STOP:
                return await self._operations.stop(server, progress)
            case Word.DELETE:
                return await self._operations.delete(server, progress)
            case other:
                assert_never(other)

    @override
    async def abort(self, vm: Vm, key: str) -> None:
        server = await self._compute.find(vm)
        if server is None or server.metadata.get(INTENT) != key:
            # What is being done to it is not ours.
            return
        if awaits_confirmation(server, await self._operations.newest_migration(server)):
            # It runs on its new host already: back again would be a second interruption.
            await self._operations.confirm(server, _ignore)
        else:
            await self._operations.end_migration(server)

    async def cordon(self, hosts: Collection[str]) -> Mapping[str, str]:
        """Disable the compute services of these; enable others that we have disabled.

        Returns those that Nova refused to change, each with the cause.
        """
        return await self._hosts.cordon(hosts)

    async def vms_on(self, host: str) -> list[str]:
        """The names of all VMs that are there. Raises DriverError."""
        return [server.name for server in await self._hosts.vms_on(host)]

    async def _found(self, vm: Vm) -> Server:
        server = await self._compute.find(vm)
        if server is None:
            raise RefusedError(_no_such(vm))
        return server


def _no_such(vm: Vm) -> str:
    return f"Nova has no VM {vm.name}" + (f" with the id {vm.vm_id}" if vm.vm_id else "")


def _objection(word: Word, server: Server) -> str | None:
    """Why a VM in this state can't be treated so; None if it can."""
    if server.task_state is not None:
        return f"Nova is busy with it: {server.task_state}"
    if server.vm_state == MOVED:
        return "it waits for its owner to confirm or revert a resize"
    if EFFECTS[word] is Effect.MOVES and server.host is None:
        return "it is on no host"
    match word, power(server):
        case (Word.LIVE_MIGRATE, state) if state not in {Power.RUNNING, Power.PAUSED}:
            return f"it is {state}, and only a running VM can be migrated live"
        case (Word.SOFT_REBOOT, state) if state is not Power.RUNNING:
            return f"it is {state}"
    if server.vm_state == "error" and word not in {Word.HARD_REBOOT, Word.DELETE}:
        return "Nova says that it is in the state ERROR"
    return None


def _ignore(_: str) -> None:
    pass
