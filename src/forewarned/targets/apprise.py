"""Chats, mailboxes and pagers, through Apprise: one notification, or a TargetError.

Apprise runs in a process of its own, `apprise_process`, for one notification. It is ended at the
caller's limit, whatever it waits for; it gets no proxy variables; and what it may connect to can be
limited. Its URLs hold credentials, so they are passed on standard input, and nothing that follows
the scheme of one is ever shown.
"""

import json
import sys
from enum import StrEnum
from importlib.util import find_spec
from typing import Final

from forewarned.targets.addresses import Reach
from forewarned.targets.errors import TargetError
from forewarned.targets.programs import last_line, run_program

_PROCESS: Final = "forewarned.targets.apprise_process"
_MISSING: Final = "Apprise is not installed: install it with `pip install 'forewarned[notify]'`"


class _Mode(StrEnum):
    NOTIFY = "notify"
    CHECK = "check"


async def notify(url: str, *, title: str, body: str, reach: Reach | None = None) -> None:
    """`reach` is where it may go; None for anywhere, as an agent's own operator may choose."""
    await _run(_Mode.NOTIFY, url, title=title, body=body, reach=reach)


async def check_service(url: str) -> None:
    """Raises TargetError for a URL that Apprise can't use. Connects to nothing."""
    await _run(_Mode.CHECK, url)


def service_of(url: str) -> str:
    """For people: the scheme, which names the service. All that follows may be a secret."""
    scheme, found, _ = url.partition("://")
    return f"{scheme}://…" if found else "the URL"


async def _run(
    mode: _Mode, url: str, *, title: str = "", body: str = "", reach: Reach | None = None
) -> None:
    if find_spec("apprise") is None:
        raise TargetError(_MISSING)
    order = {"mode": mode.value, "url": url, "title": title, "body": body, "reach": reach}
    argv = [sys.executable, "-I", "-m", _PROCESS]
    result = await run_program(argv, stdin=json.dumps(order).encode())
    if result.exit_code != 0:
        why = last_line(result.stdout) or result.last_words
        raise TargetError(f"{service_of(url)}: {why}")
