"""`serve` and `settings`. Their flags are made from the table of settings."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from forewarned.cli.credentials import credential_options
from forewarned.cli.failures import RefusedError, UsageError
from forewarned.cli.session import Session, json_option, printed_as_json
from forewarned.config.values import Address, show
from forewarned.runtime.settings import (
    SETTINGS,
    Resolved,
    Setting,
    Settings,
    SettingsError,
    load_here,
)

if TYPE_CHECKING:
    from forewarned.control.v1 import wire

F = TypeVar("F", bound=Callable[..., Any])

SERVER_PACKAGES: Final = (
    "cryptography",
    "httptools",
    "jinja2",
    "jwt",
    "prometheus_client",
    "starlette",
    "uvicorn",
    *(() if sys.platform == "win32" else ("uvloop",)),
)
"""What the extra `server` installs, by the names that are imported."""

_LISTENER: Final = frozenset(
    {
        *("identity", "rate_limit", "rate", "strict_forwarding", "hosts", "max_connections"),
        *("max_connections_per_vm", "log_level", "log_format"),
    }
)

_config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Settings file [env: FOREWARNED_CONFIG; default: forewarned.toml, if it exists].",
)


def setting_options(function: F) -> F:
    """A flag for each setting, and --config for the file that holds them."""
    return _config_option(_flags(function, SETTINGS))


def listener_options(function: F) -> F:
    """Flags for what the metadata listener of a hypervisor is told; no file holds them."""
    return _flags(function, [each for each in SETTINGS if each.name in _LISTENER])


def _flags(function: F, settings: Sequence[Setting]) -> F:
    for setting in reversed(settings):
        function = click.option(
            setting.flag,
            setting.name,
            metavar=_form(setting),
            help=f"{setting.help} [env: {setting.variable}; default: {_default(setting)}].",
        )(function)
    return function


def folder_options(function: F) -> F:
    """Where a server keeps its state, for commands that look there themselves."""
    data = click.option(
        "--data",
        metavar="PATH",
        help="Directory of the server's store [env: FOREWARNED_DATA; default: .forewarned].",
    )
    return data(_config_option(function))


def data_folder(config: Path | None, data: str | None) -> Path:
    """What `folder_options` come to."""
    return local_settings(config, data).data


def local_settings(config: Path | None, data: str | None) -> Settings:
    """The settings of the server whose state is there, as far as this command can tell."""
    # FOREWARNED_CONTROL also tells clients of servers far away, which is no matter here.
    return load_settings(config, {"data": data, "control": "127.0.0.1:0"}).settings


def _form(setting: Setting) -> str:
    """What the flag takes, as far as the default's type tells."""
    match setting.default:
        case StrEnum():
            return "|".join(type(setting.default))
        case bool():
            return "on|off"
        case int() | float():
            return "N"
        case timedelta():
            return "SPAN"
        case Path():
            return "PATH"
        case Address():
            return "HOST:PORT"
        case _:
            return "VALUE"


def _default(setting: Setting) -> str:
    usual, in_service = show(setting.default) or "(empty)", show(setting.service_default)
    if setting.service_default == setting.default:
        return usual
    return f"{usual}; {in_service} in service mode"


@click.command()
@setting_options
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the listeners' addresses to FILE, as JSON, once all of them are serving.",
)
def serve(config: Path | None, ready_file: Path | None, **flags: str | None) -> None:
    """Serve scheduled events until interrupted.

    Each setting can be given in the settings file, in the environment or here; an option given here
    wins. Port 0, as in --control 127.0.0.1:0, picks a free port, which is printed and written to
    --ready-file.
    """
    resolved = load_settings(config, flags)
    refuse_missing_packages()
    from forewarned.runtime import launch

    try:
        launch.run(resolved, ready_file=ready_file)
    except launch.StartError as error:
        raise RefusedError(str(error), code="cannot_start") from error


def refuse_missing_packages() -> None:
    """Raises RefusedError."""
    # Looked for, not imported: other processes need them, which could only end with a traceback.
    missing = [name for name in SERVER_PACKAGES if find_spec(name) is None]
    if missing:
        raise RefusedError(
            f"serving needs packages that are not installed ({', '.join(missing)})",
            "Install them: pip install 'forewarned[server]'; in a clone, '.[server]'",
            code="not_installed",
        )


@click.command()
@setting_options
@json_option
@credential_options
@click.option("--running", is_flag=True, help="Show the settings of the running server.")
def settings(*, config: Path | None, running: bool, **flags: str | None) -> None:
    """Print each setting, and where its value comes from.

    It takes the options of 'forewarned serve', and shows the settings that 'serve' would use.
    """
    # Not for `serve`, which keeps what it has imported for as long as it runs.
    from forewarned.cli.tables import setting_table
    from forewarned.control.v1 import wire

    session = Session(flags["control"] or "")
    if running:
        answer = session.control.get("/v1/settings")
        session.show(answer, lambda: [setting_table(answer.read(list[wire.Setting]))])
        return
    values = _listed(load_settings(config, flags))
    if not printed_as_json(values):
        session.print([setting_table(values)])


def load_settings(config: Path | None, flags: Mapping[str, str | None]) -> Resolved:
    try:
        return load_here(flags=flags, path=config)
    except SettingsError as error:
        raise UsageError(
            str(error),
            "'forewarned serve --help' says what each setting may be.",
            code="bad_settings",
        ) from error


def _listed(resolved: Resolved) -> "list[wire.Setting]":
    from forewarned.control.v1 import wire

    return [
        wire.Setting(name=name, value=value, origin=origin)
        for name, value, origin in resolved.listing()
    ]
