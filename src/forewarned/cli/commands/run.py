"""Running a program as one of the fleet's VMs, for tests in any language."""

import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import click

from forewarned.cli.commands.serve import load_settings, refuse_missing_packages
from forewarned.cli.credentials import credentials_of
from forewarned.cli.failures import RefusedError, UnreachableError
from forewarned.cli.parameters import complete_vm
from forewarned.cli.session import Session, is_control_named, report, with_session
from forewarned.control.v1 import wire

if TYPE_CHECKING:
    import asyncio

    from forewarned.cli.connection import Control
    from forewarned.sandbox.command import Backstage, Emulator
    from forewarned.sandbox.namespace import Spawned

_NOT_EXECUTABLE: Final = 126
_NOT_FOUND: Final = 127
"""As shells have them."""
_ANY_PORT: Final = "127.0.0.1:0"
_ADVICE: Final = (
    "Run it as root, or allow user namespaces; in a container, use 'docker run --privileged'.",
    "--isolation none needs no namespace, but then the command has to read FOREWARNED_ENDPOINT.",
)


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--as",
    "vm",
    metavar="VM",
    help="The VM to run as [default: the fleet's first].",
    shell_complete=complete_vm,
)
@click.option(
    "--isolation",
    type=click.Choice(["auto", "namespace", "none"]),
    default="auto",
    show_default=True,
    help="Whether the command gets a network namespace, in which 169.254.169.254 is the service.",
)
@click.option("--private", is_flag=True, help="Start an emulator even if one is running.")
@click.option(
    "--fleet",
    metavar="PATH",
    help="Fleet file of the new emulator; implies --private.",
)
@click.option(
    "--clock",
    metavar="VALUE",
    help="Clock of the new emulator, as for 'forewarned serve'; implies --private.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@with_session
def run(
    session: Session,
    *,
    vm: str | None,
    isolation: str,
    private: bool,
    fleet: str | None,
    clock: str | None,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND as a VM of an emulator.

    The emulator is the running one, or else one that is started for COMMAND and removed afterwards.

    If the system allows a network namespace, COMMAND finds the metadata service at 169.254.169.254,
    as on Azure, and has no other network. FOREWARNED_ENDPOINT and FOREWARNED_CONTROL hold the
    addresses of the service and of the emulator's control listener, so that 'forewarned schedule'
    works inside. Signals are passed on, and the exit code is that of COMMAND.
    """
    if sys.platform != "linux":
        raise RefusedError("'forewarned run' needs Linux", code="not_linux")
    from forewarned.sandbox import namespace
    from forewarned.sandbox.command import (
        BY_SIGNAL,
        Backstage,
        attend,
        held_signal,
        signals_held,
        start,
    )

    context = click.get_current_context()
    flags = {"fleet": fleet, "clock": clock}
    wants_own = private or any(flags.values())
    with ExitStack() as stack:
        stack.enter_context(signals_held())
        emulator = None if wants_own else _running(session, is_named=is_control_named(context))
        # Left after the emulator, which writes to it until its end.
        folder = (
            ""
            if emulator is not None
            else stack.enter_context(
                tempfile.TemporaryDirectory(prefix="forewarned-", ignore_cleanup_errors=True)
            )
        )
        backstage = stack.enter_context(Backstage(_new_loop))
        emulator = emulator or _started(backstage, folder, flags)
        name = _vm(stack.enter_context(_control(emulator)), vm)
        launch = partial(start, command, vm=name, emulator=emulator, backstage=backstage)
        if (number := held_signal()) is not None:
            # There is no command yet that could decide what comes of it.
            context.exit(BY_SIGNAL + number)
        spawned = _spawned(launch, isolation)
        try:
            spawned.go()
        except namespace.ProgramError as error:
            report(RefusedError(str(error), code="command_not_run"), context)
            context.exit(_NOT_FOUND if error.is_missing else _NOT_EXECUTABLE)
        code = attend(spawned.process)
    context.exit(code)


def _running(session: Session, *, is_named: bool) -> "Emulator | None":
    """The running emulator; None if none runs and no address was given."""
    from forewarned.sandbox.command import Emulator

    try:
        # First, because it takes a token where one is asked for; health says less without one.
        at = session.control.get("/v1/endpoints").read(wire.Endpoints)
    except UnreachableError:
        if is_named:
            raise
        return None
    health = session.control.get("/v1/health").read(wire.Health)
    if health.mode != "emulator":
        raise RefusedError(
            f"the server at {session.control.address} is not an emulator, so no command can run"
            f" as one of its VMs",
            "'forewarned run --private' starts a new emulator.",
            code="not_an_emulator",
        )
    return Emulator(metadata=at.metadata, control=session.control.address, arm=at.arm)


def _started(backstage: "Backstage", folder: str, flags: Mapping[str, str | None]) -> "Emulator":
    """A new emulator, at ports of its own. Everything else is as the settings for `serve` say."""
    refuse_missing_packages()
    from forewarned.runtime.listeners.sockets import StartError
    from forewarned.runtime.single_process import running
    from forewarned.sandbox.command import Emulator

    own = {
        "mode": "emulator",
        "data": folder,
        "metadata": _ANY_PORT,
        "control": _ANY_PORT,
        "arm": _ANY_PORT,
        "workers": "0",
        **flags,
    }
    resolved = load_settings(None, own)
    if resolved.origin["log_level"] == "default":
        # What it would say stands among what the command says.
        resolved = load_settings(None, {**own, "log_level": "error"})
    try:
        at = backstage.enter(running(resolved)).addresses
    except StartError as error:
        raise RefusedError(str(error), code="cannot_start") from error
    return Emulator(metadata=at.metadata_url, control=at.control_url, arm=at.arm_url)


def _new_loop() -> "asyncio.AbstractEventLoop":
    try:
        import uvloop
    except ModuleNotFoundError:
        # Not needed to pass things on to an emulator that runs.
        import asyncio

        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _control(emulator: "Emulator") -> "Control":
    from forewarned.cli.connection import Control

    return Control(emulator.control, credentials=credentials_of(click.get_current_context()))


def _vm(control: "Control", wanted: str | None) -> str:
    from forewarned.cli.lookup import suggesting_vms, vm_names

    if wanted is not None:
        with suggesting_vms(control, [wanted]):
            return control.get(f"/v1/vms/{quote(wanted, safe='')}").read(wire.Vm).name
    names = vm_names(control)
    if not names:
        raise RefusedError("the fleet has no VMs", code="unknown_resource")
    return names[0]


def _spawned(launch: "Callable[..., Spawned]", isolation: str) -> "Spawned":
    from forewarned.sandbox.namespace import NamespaceError

    if isolation == "none":
        return launch(isolated=False)
    try:
        return launch(isolated=True)
    except NamespaceError as error:
        if isolation == "namespace":
            raise RefusedError(
                f"can't create a network namespace for the command here ({error})",
                *_ADVICE,
                code="no_namespace",
            ) from error
        click.echo(
            f"note: the command has no network namespace ({error}), so 169.254.169.254 is not"
            " the service there: the command has to read FOREWARNED_ENDPOINT.",
            err=True,
        )
        return launch(isolated=False)
