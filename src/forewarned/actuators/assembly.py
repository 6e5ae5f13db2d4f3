"""Puts actuators together from their tables, and runs them until they are told to stop."""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from forewarned.actuators.actuator import Actuator
from forewarned.actuators.http_desk import HttpDesk, Server
from forewarned.actuators.settings import Declared
from forewarned.actuators.sources.reporter import PlatformLister, SourceReporter
from forewarned.actuators.sources.table import SourceTable
from forewarned.actuators.surveyor import Surveyor
from forewarned.actuators.table import ActuatorTable
from forewarned.security.files import InUseError, locked_or_refused, private_directory

_log = logging.getLogger(__name__)

_AGAIN: Final = 10.0
"""Seconds until a driver is opened again that could not be opened."""


class StateError(Exception):
    """The state directory can't be used. The message says why."""


@contextmanager
def sole_user(state: Path) -> Iterator[None]:
    """Two processes must not keep records in one directory. Raises StateError."""
    try:
        private_directory(state)
        with locked_or_refused(state / "actuators.lock"):
            yield
    except InUseError as error:
        raise StateError(f"the state directory {state} is {error}") from error
    except OSError as error:
        raise StateError(f"can't use the state directory {state}: {error.strerror}") from error


async def run_actuators(
    declared: Declared, server: Server, *, state: Path, stop: asyncio.Event
) -> None:
    """Returns once it was told to stop, and actions under way have ended or had their time."""
    # They log every request.
    for library in ("httpx2", "httpcore2"):
        logging.getLogger(library).setLevel(logging.WARNING)
    holder = f"{socket.gethostname()}:{os.getpid()}"
    async with asyncio.TaskGroup() as running:
        for name, table in declared.actuators.items():
            desk = HttpDesk(server, actuator=name, holder=holder)
            running.create_task(
                _run(name, table, declared.sources.get(name), desk, state=state / name, stop=stop)
            )


async def _run(
    name: str,
    table: ActuatorTable,
    source: SourceTable | None,
    desk: HttpDesk,
    *,
    state: Path,
    stop: asyncio.Event,
) -> None:
    """One actuator, whose failure must not end the others."""
    while not stop.is_set():
        try:
            async with desk, table.equipped(state) as equipped:
                _log.info(
                    "an actuator is running", extra={"actuator": name, "dry_run": table.dry_run}
                )
                async with asyncio.TaskGroup() as parts:
                    parts.create_task(Surveyor(name, equipped, desk).run(stop))
                    parts.create_task(Actuator(name, equipped, desk).run(stop))
                    if source is not None and isinstance(equipped.driver, PlatformLister):
                        reporter = SourceReporter(source, equipped.driver, desk)
                        parts.create_task(reporter.run(stop))
        except Exception:  # noqa: BLE001  # whatever a driver raises as it is opened
            _log.exception("an actuator failed and is being restarted", extra={"actuator": name})
            try:
                async with asyncio.timeout(_AGAIN):
                    await stop.wait()
            except TimeoutError:
                continue
