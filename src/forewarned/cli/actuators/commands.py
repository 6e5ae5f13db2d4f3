"""Running actuators on a machine of their own, such as a hypervisor."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from forewarned.cli.credentials import credential_options, credentials_of
from forewarned.cli.failures import RefusedError, UsageError
from forewarned.cli.session import control_address, control_option
from forewarned.cli.wording import mistakes_of
from forewarned.config.values import LogFormat, LogLevel

if TYPE_CHECKING:
    from forewarned.actuators.settings import Declared

_DEFAULT_FILE: Final = Path("/etc/forewarned/actuators.toml")
_DEFAULT_STATE: Final = Path("/var/lib/forewarned-actuators")


@click.group()
def actuator() -> None:
    """Carry out the tasks of events on this machine.

    A server itself runs the actuators in its settings file. Use this on a hypervisor, or on any
    other machine from which VMs can be acted on.
    """


@actuator.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--config",
    envvar="FOREWARNED_ACTUATORS_CONFIG",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    default=_DEFAULT_FILE,
    help="File with the tables [actuators.NAME] and [[sources]]"
    f" [env: FOREWARNED_ACTUATORS_CONFIG; default: {_DEFAULT_FILE}].",
)
@click.option(
    "--state",
    envvar="FOREWARNED_ACTUATORS_STATE",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    default=_DEFAULT_STATE,
    help="Directory for state that must survive a crash, on a local disk"
    f" [env: FOREWARNED_ACTUATORS_STATE; default: {_DEFAULT_STATE}].",
)
@click.option(
    "--log-level",
    type=click.Choice([*LogLevel], case_sensitive=False),
    default=LogLevel.INFO,
    help="Least severe level to log [default: info].",
)
@click.option(
    "--log-format",
    type=click.Choice([*LogFormat], case_sensitive=False),
    default=LogFormat.TEXT,
    help="Plain lines, or JSON [default: text].",
)
@control_option
@credential_options
@click.pass_context
def run(
    context: click.Context,
    names: tuple[str, ...],
    *,
    config: Path,
    state: Path,
    log_level: str,
    log_format: str,
) -> None:
    """Run the actuators NAME until interrupted; without a NAME, all in the file.

    You can stop them at any moment and start them again: they first check what became of the tasks
    they had begun. The server's settings must name each of them, with driver = "remote".
    """
    declared = _declared(config, names)
    import asyncio

    from forewarned.actuators.assembly import StateError, sole_user
    from forewarned.actuators.http_desk import Server, UnsafeServerError
    from forewarned.cli.actuators.process import run_until_stopped
    from forewarned.cli.connection import normal_address
    from forewarned.runtime import logs

    credentials = credentials_of(context)
    url = normal_address(control_address(context))
    logs.configure(level=log_level, as_json=log_format == LogFormat.JSON)
    try:
        server = Server(url=url, token=credentials.token, ca=credentials.ca)
        with sole_user(state):
            asyncio.run(run_until_stopped(declared, server, state))
    except UnsafeServerError as error:
        raise UsageError(str(error), code="token_in_clear", field="control") from error
    except StateError as error:
        raise RefusedError(str(error), code="cannot_start") from error


def _declared(config: Path, names: tuple[str, ...]) -> "Declared":
    from forewarned.actuators.settings import ActuatorSettingsError, load

    try:
        found = load(config).local()
    except ActuatorSettingsError as error:
        raise UsageError(
            *mistakes_of(config, error),
            code="bad_file",
            field="config",
        ) from error
    local = found.actuators
    unknown = [name for name in names if name not in local]
    if unknown:
        raise UsageError(
            f"{config} has no [actuators.{unknown[0]}] that can be run here",
            code="unknown_actuator",
            field="names",
        )
    if not local:
        raise UsageError(f"{config} has no [actuators.NAME]", code="no_actuators", field="config")
    return replace(found, actuators={name: local[name] for name in names}) if names else found
