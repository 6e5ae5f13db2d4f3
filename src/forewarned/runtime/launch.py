"""Where serving begins: everything in one process, or a supervisor and the processes it starts."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from forewarned import __version__
from forewarned.runtime import supervisor
from forewarned.runtime.listeners.sockets import Addresses, StartError
from forewarned.runtime.ready_file import ReadyFile, ReadyFileError
from forewarned.runtime.settings import ControlAccess, Resolved, Settings

__all__ = ["StartError", "run"]


def run(resolved: Resolved, *, ready_file: Path | None = None) -> None:
    """Serve until told to stop. Raises StartError.

    `ready_file` tells scripts where, once every listener serves.
    """
    with ExitStack() as stack:
        stack.enter_context(_start_errors())
        file = None
        if ready_file is not None:
            file = ReadyFile(ready_file)
            stack.enter_context(file.present())

        def welcome(addresses: Addresses) -> None:
            if file is not None:
                file.write(_facts(addresses, resolved.settings))
            sys.stdout.write(_welcome(addresses, resolved.settings))
            sys.stdout.flush()

        _serve(resolved, welcome)


def _serve(resolved: Resolved, welcome: Callable[[Addresses], None]) -> None:
    settings = resolved.settings
    if settings.workers and settings.replay is None:
        supervisor.run(resolved, welcome)
        return
    # Not before: a supervisor is no place for all that the processes it starts are made of.
    from forewarned.runtime import single_process  # noqa: PLC0415

    single_process.run(resolved, welcome)


@contextmanager
def _start_errors() -> Iterator[None]:
    try:
        yield
    except ReadyFileError as error:
        raise StartError(str(error)) from error


def _facts(addresses: Addresses, settings: Settings) -> dict[str, str | None]:
    return {
        "version": __version__,
        "mode": settings.mode,
        "metadata": addresses.metadata_url,
        "control": addresses.control_url,
        "arm": addresses.arm_url,
        "data": str(settings.data.absolute()),
    }


def _source(settings: Settings) -> str:
    if settings.replay is not None:
        return f"playing back {settings.replay}"
    return f"state in {settings.data}"


def _welcome(addresses: Addresses, settings: Settings) -> str:
    document = f"{addresses.metadata_url}/metadata/scheduledevents?api-version=2020-07-01"
    arm = "" if addresses.arm_url is None else f"  arm       {addresses.arm_url}\n"
    sign_in = ""
    if settings.control_access is ControlAccess.TOKEN:
        # Another directory than the default has to be named, or the token is for no server.
        create = "forewarned token create NAME --role ROLE"
        if settings.data != Settings().data:
            create += f" --data {shlex.quote(str(settings.data))}"
        sign_in = f"Sign in:    with a token from `{create}`\n"
    reached = ""
    if settings.is_on_network:
        reached = (
            "Open to the network: everyone who reaches the metadata address can act as any VM.\n"
        )
    return f"""\
Forewarned {__version__}: {settings.mode}, clock {settings.clock}, {_source(settings)}

  metadata  {addresses.metadata_url}
  control   {addresses.control_url}
{arm}{reached}
Console:    open {addresses.control_url}/ in a browser
{sign_in}As a VM:    curl -H Metadata:true "{document}"
Stop with Ctrl-C.
"""
