"""The libvirt driver: carries events out on the VMs of QEMU/KVM hosts."""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final, Self, assert_never

from typing_extensions import override

from forewarned.actuators.driver import (
    Action,
    Driver,
    DriverError,
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
from forewarned.actuators.libvirt import power
from forewarned.actuators.libvirt.changes import until_changed
from forewarned.actuators.libvirt.connections.hosts import Hosts
from forewarned.actuators.libvirt.feasibility import TRANSIENT, objection
from forewarned.actuators.libvirt.instances import write_mark
from forewarned.actuators.libvirt.inventory import list_hosts
from forewarned.actuators.libvirt.marks import Mark
from forewarned.actuators.libvirt.migration import Migration, Routes, definition_of
from forewarned.actuators.libvirt.search import LocatedVm, locate
from forewarned.actuators.libvirt.vocabulary import EFFECTS, Word
from forewarned.config.durations import format_duration
from forewarned.service.sources.listing import Listing

_ABORTED: Final = timedelta(seconds=30)
"""How long an aborted migration may take to end."""
_LOOKS: Final = 0.25


class LibvirtDriver(Driver):
    def __init__(self, hosts: Iterable[str], *, uri: str, routes: Routes | None = None) -> None:
        """`hosts` may be moved to. `uri` has `{host}` where a host's name belongs."""
        self._hosts = Hosts(hosts, uri=uri)
        self._migration = Migration(
            self._hosts, routes or Routes(peer=uri.replace("{host}", "{target}"))
        )

    async def __aenter__(self) -> Self:
        await self._hosts.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._hosts.__aexit__()

    @override
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        located = await locate(self._hosts, vm)
        if located is None:
            return Verdict(possible=False, reason=_no_such(vm))
        return await survey_ways(action, lambda word: self._verdict(Word(word), located, action))

    async def vms_on(self, host: str) -> list[str]:
        """Those that are defined there count too: the host is not done with them."""
        return await self._hosts.host(host).call(
            lambda connection: sorted(domain.name() for domain in connection.listAllDomains())
        )

    async def list_vms(self) -> Listing:
        """Those of the hosts in the settings, by the names that they have there."""
        return await list_hosts(self._hosts.targets)

    async def until_changed(self) -> None:
        """Return a moment after a VM of one of those hosts has come, gone, or changed."""
        await until_changed(self._hosts.targets)

    async def _verdict(self, word: Word, located: LocatedVm, action: Action) -> Verdict:
        reason = objection(
            word,
            await definition_of(located),
            power=located.instance.power,
            is_persistent=located.instance.is_persistent,
        )
        if reason is not None:
            return Verdict(possible=False, reason=reason)
        if EFFECTS[word] is not Effect.MOVES:
            return Verdict(possible=True, reason=f"'{word}' on {located.host.name}")
        try:
            target = await self._migration.target_of(located, action)
        except RefusedError as error:
            return Verdict(possible=False, reason=str(error))
        return Verdict(possible=True, reason=f"'{word}' to {target.name}", target=target.name)

    @override
    async def observe(self, vm: Vm) -> Sighting:
        located = await locate(self._hosts, vm)
        if located is None:
            return Sighting(power=Power.GONE)
        instance = located.instance
        return Sighting(
            host=instance.host,
            power=instance.power,
            witness=instance.run,
            intent=instance.mark.key,
            issued=instance.mark.issued,
            job=located.job,
            stood_still=instance.stood_still,
        )

    @override
    async def mark(self, vm: Vm, key: str) -> None:
        located = await self._located(vm)
        instance = located.instance
        mark = Mark(
            key=key,
            issued=False,
            power=instance.power,
            host=instance.host,
            domain_id=instance.domain_id,
            run=instance.run,
        )
        if instance.mark.key == key:
            # Marked by an earlier attempt, which may have changed the VM since.
            mark = replace(instance.mark, issued=False)
        await located.call(lambda domain: write_mark(domain, mark))

    @override
    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        try:
            await self._carry_out(Word(action.do), action, vm, progress)
        except (RefusedError, NoEffectError) as error:
            if action.otherwise is None:
                raise
            progress(f"{error}; {action.otherwise} instead")
            await self._carry_out(
                Word(action.otherwise), replace(action, patience=None), vm, progress
            )
        with after_effect():
            await self._mark_issued(vm, key)

    async def _mark_issued(self, vm: Vm, key: str) -> None:
        located = await locate(self._hosts, vm)
        if located is None:
            # Undefined, or a transient VM that was stopped: there is nothing to mark.
            return
        mark = replace(located.instance.mark, key=key, issued=True)
        await located.call(lambda domain: write_mark(domain, mark))

    async def _carry_out(self, word: Word, action: Action, vm: Vm, progress: Progress) -> None:
        """Raises RefusedError if nothing was done, NoEffectError if the patience is over."""
        located = await self._located(vm)
        # That of a cold move is for the guest's shutdown only.
        patience = None if word is Word.COLD_MOVE else action.patience
        try:
            async with asyncio.timeout(None if patience is None else patience.total_seconds()):
                await self._carry_out_now(word, action, located, progress)
        except TimeoutError as error:
            await self._end_job(vm)
            if word is Word.LIVE_MIGRATE and await self._has_left(located):
                # It could no longer be ended.
                return
            waited = format_duration(patience or timedelta(0))
            raise NoEffectError(f"{word} had no effect within {waited}") from error

    async def _has_left(self, located: LocatedVm) -> bool:
        with after_effect():
            seen = await locate(self._hosts, located.vm)
        return seen is not None and seen.host is not located.host

    async def _carry_out_now(
        self, word: Word, action: Action, located: LocatedVm, progress: Progress
    ) -> None:
        match word:
            case Word.LIVE_MIGRATE:
                await self._migration.live(located, action, progress)
            case Word.COLD_MOVE:
                await self._move_cold(located, action, progress)
            case Word.ACPI:
                await power.press_for_reboot(located)
            case Word.RESET:
                await power.reset(located)
            case Word.RESTART:
                await power.restart(located)
            case Word.HOLD:
                await power.hold(located, action.duration or timedelta(0))
            case Word.SHUTDOWN:
                await power.shut_down(self._hosts, located)
            case Word.DESTROY:
                await power.destroy(located)
            case Word.UNDEFINE:
                await power.undefine(located)
            case other:
                assert_never(other)

    async def _move_cold(self, located: LocatedVm, action: Action, progress: Progress) -> None:
        """Every step looks first: an actuator that died may have left the VM at any of them."""
        marked = located.instance.mark
        was_moved = bool(marked.host) and marked.host != located.host.name
        if was_moved and located.instance.power is Power.RUNNING:
            return
        if not located.instance.is_persistent:
            raise RefusedError(f"{located.vm.name} is {TRANSIENT}")
        if located.instance.power is not Power.OFF:
            # Known before it is stopped, rather than after.
            target = await self._migration.target_of(located, action)
            progress(f"shutting down, to move to {target.name}")
        with after_effect():
            if located.instance.power is not Power.OFF:
                await self._stop(located, action.patience)
                located = await self._located(located.vm)
            if not was_moved:
                located = await self._migration.offline(located, action)
            if marked.power is not Power.OFF:
                progress(f"starting on {located.host.name}")
                await power.start(located)

    async def _stop(self, located: LocatedVm, patience: timedelta | None) -> None:
        """By its power button if it is given time for that; switched off otherwise."""
        if patience is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience.total_seconds()):
                    await power.shut_down(self._hosts, located)
                    return
        await power.destroy(located)

    @override
    async def abort(self, vm: Vm, key: str) -> None:
        located = await locate(self._hosts, vm)
        if located is None:
            return
        if located.job:
            await self._end_job(vm)
            return
        mark = located.instance.mark
        is_held = located.instance.power is Power.PAUSED and not located.instance.is_arriving
        if is_held and mark.key == key and not mark.issued:
            await power.resume(located)

    async def _end_job(self, vm: Vm) -> None:
        """Returns when it has ended, or after a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ABORTED.total_seconds()):
                while (located := await locate(self._hosts, vm)) is not None and located.job:
                    # It may be over already, or past the point where it can be ended.
                    with contextlib.suppress(DriverError):
                        await located.call(lambda domain: domain.abortJob())
                    await asyncio.sleep(_LOOKS)

    async def _located(self, vm: Vm) -> LocatedVm:
        located = await locate(self._hosts, vm)
        if located is None:
            raise RefusedError(_no_such(vm))
        return located


def _no_such(vm: Vm) -> str:
    told = f"libvirt has no VM {vm.name}"
    return f"{told} with the UUID {vm.vm_id}" if vm.vm_id else told
