"""Looking at probes: files in the handler's folder, and commands run there."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Final

from forewarned.scenarios.model import Probe

_LONGEST: Final = timedelta(seconds=10)


def file_holds(probe: Probe, folder: Path) -> bool | None:
    """Whether the file exists; None if the probe is a command."""
    return None if probe.file is None else (folder / probe.file).exists()


async def holds(probe: Probe, folder: Path) -> bool:
    """A command that can't be run, or takes too long, does not hold."""
    found = file_holds(probe, folder)
    if found is not None:
        return found
    try:
        process = await asyncio.create_subprocess_exec(
            *(probe.command or ()),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(_LONGEST.total_seconds()):
            return await process.wait() == 0
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
