"""The process of a server's actuators: it claims tasks at the control listener, as any other does.

Credentials of hypervisors stay out of the writer, and no call that takes long ever holds it up.
"""

import asyncio
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from forewarned.actuators.assembly import StateError, run_actuators, sole_user
from forewarned.actuators.http_desk import Server
from forewarned.config.values import LogFormat
from forewarned.runtime import child_process, logs
from forewarned.runtime.settings import Settings
from forewarned.security.certificates import SERVER_FILE

STATE: Final = "actuators"
"""The directory for what must outlive the process, in the data directory."""
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  # where one listens


def main() -> None:
    # Not uvloop: drivers start programs, whose groups they must be able to end.
    asyncio.run(_carry_out(child_process.receive()))


async def _carry_out(brief: child_process.Brief) -> None:
    stop = child_process.told_to_stop()
    resolved = brief.resolved()
    settings = resolved.settings
    logs.configure(level=settings.log_level, as_json=settings.log_format is LogFormat.JSON)
    server = Server(
        url=_reachable(brief.addresses.control_url),
        token=brief.token,
        shows=_certificate(settings),
    )
    state = settings.data / STATE
    try:
        with sole_user(state):
            child_process.report(child_process.StartResult())
            await run_actuators(resolved.actuators.local(), server, state=state, stop=stop)
    except StateError as error:
        child_process.report(child_process.StartResult(str(error)))
        sys.exit(1)


def _reachable(url: str) -> str:
    """Where this machine reaches a listener that may listen on all of its addresses."""
    parts = urlsplit(url)
    host = _ANYWHERE.get(parts.hostname or "")
    return url if host is None else f"{parts.scheme}://{host}:{parts.port}"


def _certificate(settings: Settings) -> Path | None:
    """What the control listener shows; None where it speaks plain HTTP, on loopback."""
    if not settings.control_is_tls:
        return None
    return settings.tls_certificate or settings.data / SERVER_FILE


if __name__ == "__main__":
    main()
