"""Carries tasks out by running programs of the operator's.

A program gets the task in `FOREWARNED_*` variables and as JSON on its standard input. Exit code 0:
done; 75: nothing was done, try again later; any other: failed. The last line it prints may be JSON
with the VM's new host: `{"host": "hv-b"}`.

Invariant (I22): a program runs to its end even if the actuator is killed, and the next actuator on
this machine knows whether it was started, and how it ended.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from forewarned.actuators.command import inventory, runner
from forewarned.actuators.command.records import INPUT, TRY_LATER, Folder, Record, text
from forewarned.actuators.driver import (
    Action,
    DriverError,
    Power,
    Progress,
    RefusedError,
    Sighting,
    TryLaterError,
    Verdict,
    Vm,
)
from forewarned.core.model import EventType
from forewarned.service.sources.listing import Listing
from forewarned.targets.errors import TargetError
from forewarned.targets.programs import environment, last_line, missing, run_program

_LOOK_AGAIN: Final = 0.05
_GRACE: Final = 0.5
"""Seconds between SIGTERM and SIGKILL."""


class CommandDriver:
    def __init__(
        self,
        argvs: Mapping[EventType, tuple[str, ...]],
        check: tuple[str, ...],
        state: Path,
        *,
        listing: tuple[str, ...] = (),
    ) -> None:
        """`state` is a directory for what becomes of programs, on a local disk."""
        self._argvs = argvs
        self._listing = listing
        self._check = check
        # Programs and their runners have another working directory.
        self._state = state.absolute()
        self._started: dict[Path, subprocess.Popen[bytes]] = {}
        """By this process, to be told when they have ended."""

    async def list_vms(self) -> Listing:
        return await inventory.list_vms(self._listing)

    async def survey(self, action: Action, vm: Vm) -> Verdict:  # noqa: ARG002  # programs can't say
        problems = missing(self._argvs[action.type][0])
        return Verdict(possible=not problems, reason="; ".join(problems) or f"run {action.do}")

    async def observe(self, vm: Vm) -> Sighting:
        record = await self._read(self._folder(vm))
        checked = await self._checked(vm)
        told = _told(record.last_line) if record.is_done else {}
        return Sighting(
            host=checked.host or text(told, "host"),
            power=checked.power,
            witness=checked.witness,
            conclusive=bool(checked.witness),
            intent=record.key,
            issued=record.is_done,
            untouched=record.is_untouched,
            job="its program is running" if record.is_running else "",
        )

    async def mark(self, vm: Vm, key: str) -> None:
        await asyncio.to_thread(self._folder(vm).mark, key)

    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        folder = self._folder(vm)
        await asyncio.to_thread(self._start, folder, action, vm, key)
        progress(f"{action.do} is running")
        while (record := await self._read(folder)).is_running:  # noqa: ASYNC110  # see `_start`
            await asyncio.sleep(_LOOK_AGAIN)
        if (started := self._started.pop(folder.path, None)) is not None:
            # It has let go of its lock, which is the last thing it does.
            await asyncio.to_thread(started.wait)
        if record.key != key or record.exit_code is None:
            if record.is_untouched:
                raise RefusedError(f"{action.do} could not be started")
            raise DriverError(f"{action.do} was killed")
        if record.exit_code == TRY_LATER:
            raise TryLaterError(record.last_error or f"{action.do} ended with exit code 75")
        if record.exit_code:
            raise DriverError(f"{action.do} {record.how_it_ended}")

    async def abort(self, vm: Vm, key: str) -> None:
        folder = self._folder(vm)
        record = await self._read(folder)
        if not record.is_running or record.key != key or not record.group:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(record.group, number)
            await asyncio.sleep(_GRACE)
            if not (await self._read(folder)).is_running:
                return

    def _folder(self, vm: Vm) -> Folder:
        return Folder(self._state / quote(vm.name.casefold(), safe=""))

    async def _read(self, folder: Folder) -> Record:
        started = self._started.get(folder.path)
        if started is not None and started.poll() is not None:
            del self._started[folder.path]
        return await asyncio.to_thread(folder.read)

    def _start(self, folder: Folder, action: Action, vm: Vm, key: str) -> None:
        """Start the program. Not by asyncio, which ends its processes when it ends itself."""
        task = _as_json(action, vm, key)
        try:
            with (
                folder.locked(key, self._argvs[action.type], task) as lock,
                (folder.path / INPUT).open("rb") as task_file,
            ):
                self._started[folder.path] = subprocess.Popen(
                    [sys.executable, "-I", "-S", runner.__file__, folder.path],
                    stdin=task_file,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment(_variables(task)),
                    cwd="/",
                    pass_fds=[lock],
                    start_new_session=True,
                )
        except BlockingIOError as error:
            raise DriverError(f"another program for {vm.name} is still running") from error
        except OSError as error:
            why = f"{error.filename}: {error.strerror}"
            raise RefusedError(f"can't start a program for {vm.name} ({why})") from error

    async def _checked(self, vm: Vm) -> Sighting:
        if not self._check:
            return Sighting()
        task = {"vm": vm.name, "vm_id": vm.vm_id, "host": vm.host}
        try:
            ran = await run_program(
                self._check, variables=_variables(task), stdin=json.dumps(task).encode()
            )
        except TargetError as error:
            raise DriverError(str(error)) from error
        if ran.exit_code == TRY_LATER or ran.exit_code < 0:
            return Sighting()
        told = _told(last_line(ran.stdout))
        power = Power.RUNNING if ran.exit_code == 0 else Power.OFF
        with suppress(ValueError):
            power = Power(text(told, "power") or power)
        return Sighting(host=text(told, "host"), power=power, witness=text(told, "witness") or "")


def _as_json(action: Action, vm: Vm, key: str) -> dict[str, str]:
    event_id, _, _ = key.partition("/")
    duration = "" if action.duration is None else f"{action.duration.total_seconds():g}"
    return {
        "key": key,
        "event_id": event_id,
        "type": action.type.value,
        "vm": vm.name,
        "vm_id": vm.vm_id,
        "host": vm.host,
        "duration": duration,
        "cordoned": " ".join(sorted(action.cordoned)),
        "target": action.target or "",
    }


def _variables(task: Mapping[str, str]) -> dict[str, str]:
    return {f"FOREWARNED_{name.upper()}": value for name, value in task.items()}


def _told(line: str) -> Mapping[str, object]:
    """What a program said in its last line, if that is a JSON object."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
