"""A real actuator with the libvirt driver, which kills itself with SIGKILL at one of its steps."""

import asyncio
import os
import signal
from datetime import timedelta
from typing import Any

import libvirt
from typing_extensions import override

from forewarned.actuators.actuator import Actuator, Equipped
from forewarned.actuators.desk import Assignment, TaskRef
from forewarned.actuators.driver import Action, Progress, Sighting, Verdict, Vm
from forewarned.actuators.http_desk import HttpDesk, Server
from forewarned.actuators.libvirt.connections.hosts import Host
from forewarned.actuators.libvirt.driver import LibvirtDriver
from forewarned.actuators.libvirt.migration import Routes
from forewarned.actuators.libvirt.table import LibvirtAction, LibvirtTable
from forewarned.actuators.libvirt.vocabulary import Word
from forewarned.actuators.slots import Limits
from tests.lab.post import Post
from tests.preloaded import enter

_LOOKS = 0.05
_SLOWLY = 8
"""MiB a second."""


class Life:
    def __init__(self, last: str | None) -> None:
        """It dies before this step; None for never."""
        self._last = last
        self._has_looked = False

    def go_on(self, step: str) -> None:
        if step == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def look(self) -> None:
        self.go_on("observe again" if self._has_looked else "observe")
        self._has_looked = True


class MortalDesk(HttpDesk):
    def __init__(self, post: Post, life: Life, stop: asyncio.Event) -> None:
        server = Server(url=f"http://{post.control}")
        super().__init__(server, actuator=post.actuator, holder=f"test:{os.getpid()}")
        self._life = life
        self._stop = stop

    @override
    async def claim(self, *, limit: int, patience: timedelta) -> list[Assignment]:
        self._life.go_on("claim")
        return await super().claim(limit=limit, patience=patience)

    @override
    async def begin(self, task: TaskRef, before: Sighting) -> None:
        self._life.go_on("begin")
        await super().begin(task, before)

    @override
    async def finish(self, task: TaskRef, after: Sighting) -> None:
        self._life.go_on("finish")
        await super().finish(task, after)
        self._life.go_on("stop")
        self._stop.set()

    @override
    async def fail(
        self, task: TaskRef, error: str, *, unharmed: bool, after: Sighting | None
    ) -> None:
        await super().fail(task, error, unharmed=unharmed, after=after)
        self._stop.set()


class SlowRoutes(Routes):
    """A fast machine would move a guest between two looks."""

    @override
    def to(self, target: Host) -> tuple[str, dict[str, Any]]:  # as libvirt has them
        peer, parameters = super().to(target)
        return peer, {**parameters, libvirt.VIR_MIGRATE_PARAM_BANDWIDTH: _SLOWLY}


class MortalDriver(LibvirtDriver):
    def __init__(self, post: Post, life: Life) -> None:
        routes = SlowRoutes(peer=post.peer_uri, memory="tcp://{target}-mig")
        super().__init__(post.hosts, uri=post.uri, routes=routes)
        self._life = life

    @override
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        self._life.go_on("survey")
        return await super().survey(action, vm)

    @override
    async def observe(self, vm: Vm) -> Sighting:
        self._life.look()
        return await super().observe(vm)

    @override
    async def mark(self, vm: Vm, key: str) -> None:
        self._life.go_on("mark")
        await super().mark(vm, key)

    @override
    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        self._life.go_on("act")
        watching = asyncio.create_task(self._watch(vm))
        try:
            await super().act(action, vm, key, progress)
        finally:
            watching.cancel()

    async def _watch(self, vm: Vm) -> None:
        while not (await super().observe(vm)).job:  # noqa: ASYNC110  # libvirt tells of no job
            await asyncio.sleep(_LOOKS)
        self._life.go_on("while it moves")

    @override
    async def _mark_issued(self, vm: Vm, key: str) -> None:
        self._life.go_on("mark as issued")
        await super()._mark_issued(vm, key)


def run(post: Post, last: str | None) -> None:
    """Carry out one task, or die before that."""
    enter(post.namespace)
    asyncio.run(_run(post, Life(last)))


async def _run(post: Post, life: Life) -> None:
    stop = asyncio.Event()
    table = LibvirtTable(
        uri=post.uri,
        reboot=LibvirtAction(do=Word.RESET),
        freeze=LibvirtAction(do=Word.LIVE_MIGRATE),
    )
    async with MortalDesk(post, life, stop) as desk, MortalDriver(post, life) as driver:
        equipped = Equipped(driver=driver, procedures=table.procedures(), limits=Limits())
        await Actuator(post.actuator, equipped, desk).run(stop)
