"""Where serving begins: everything in one process, or a supervisor and the processes it starts."""

import shlex
import sys

from notbefore import __version__, supervisor
from notbefore.listeners import Addresses, StartError
from notbefore.settings import ControlAccess, Resolved, Settings

__all__ = ["StartError", "run"]


def run(resolved: Resolved) -> None:
    """Serve until told to stop. Raises StartError."""

    def welcome(addresses: Addresses) -> None:
        sys.stdout.write(_welcome(addresses, resolved.settings))
        sys.stdout.flush()

    if resolved.settings.workers:
        supervisor.run(resolved, welcome)
        return
    # Not before: a supervisor is no place for all that the processes it starts are made of.
    from notbefore import alone  # noqa: PLC0415

    alone.run(resolved, welcome)


def _welcome(addresses: Addresses, settings: Settings) -> str:
    document = f"{addresses.metadata_url}/metadata/scheduledevents?api-version=2020-07-01"
    arm = "" if addresses.arm_url is None else f"  arm       {addresses.arm_url}\n"
    sign_in = ""
    if settings.control_access is ControlAccess.TOKEN:
        # Another directory than the default has to be named, or the token is for no server.
        create = "notbefore token create NAME --role ROLE"
        if settings.data != Settings().data:
            create += f" --data {shlex.quote(str(settings.data))}"
        sign_in = f"Sign in:    with a token of `{create}`\n"
    return f"""\
NotBefore {__version__}: {settings.mode}, clock {settings.clock}, state in {settings.data}

  metadata  {addresses.metadata_url}
  control   {addresses.control_url}
{arm}
Look:       open {addresses.control_url}/ in a browser
{sign_in}Be a VM:    curl -H Metadata:true "{document}"
Stop with Ctrl-C.
"""
