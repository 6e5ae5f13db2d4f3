"""Writing a commented file to start from, for the user's case. No file is ever overwritten."""

from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Final

import click

from forewarned.cli.failures import RefusedError
from forewarned.cli.session import json_option, printed_as_json

_STDOUT: Final = "-"


class FleetCase(StrEnum):
    LAPTOP = "laptop"
    PRIVATE_CLOUD = "private-cloud"


class AgentCase(StrEnum):
    WEB = "web"
    DATABASE = "database"
    KUBERNETES = "kubernetes"
    COMMAND = "command"


class SettingsCase(StrEnum):
    EMULATOR = "emulator"
    CONTAINER = "container"
    SERVICE = "service"
    NODES = "nodes"


@click.group()
def init() -> None:
    """Write a commented file to start from.

    It never overwrites a file. Comments say what the lines are for; remove what you don't need.
    """


@init.command()
@click.argument("file", default="fleet.toml", metavar="[FILE]")
@click.option(
    "--for",
    "case",
    type=click.Choice([case.value for case in FleetCase]),
    default=FleetCase.LAPTOP.value,
    show_default=True,
    help="laptop: VMs to try things out with; private-cloud: real VMs on your hosts.",
)
@json_option
def fleet(*, file: str, case: str) -> None:
    """Write a fleet file; '-' prints it."""
    _write(f"fleet-{case}", file, f"forewarned serve --fleet {file}")


@init.command()
@click.argument("file", default="agent.toml", metavar="[FILE]")
@click.option(
    "--for",
    "case",
    type=click.Choice([case.value for case in AgentCase]),
    default=AgentCase.COMMAND.value,
    show_default=True,
    help="web: HAProxy and a systemd unit; database: PostgreSQL; kubernetes: a node of a cluster;"
    " command: your own programs.",
)
@json_option
def agent(*, file: str, case: str) -> None:
    """Write an agent's file; '-' prints it."""
    _write(f"agent-{case}", file, f"forewarned agent check {file}")


@init.command()
@click.argument("file", default="forewarned.toml", metavar="[FILE]")
@click.option(
    "--for",
    "case",
    type=click.Choice([case.value for case in SettingsCase]),
    default=SettingsCase.EMULATOR.value,
    show_default=True,
    help="emulator: on a laptop; container: an emulator that other containers reach; service: one"
    " server for real VMs; nodes: several servers that share a PostgreSQL database.",
)
@json_option
def settings(*, file: str, case: str) -> None:
    """Write a server's settings file; '-' prints it."""
    _write(f"settings-{case}", file, f"forewarned doctor --config {file}")


def template(name: str) -> str:
    folder = resources.files(__package__).joinpath("templates")
    return folder.joinpath(f"{name}.toml").read_text(encoding="utf-8")


def _write(name: str, file: str, then: str) -> None:
    text = template(name)
    if file == _STDOUT:
        click.echo(text, nl=False)
        return
    path = Path(file)
    try:
        with path.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError as error:
        raise RefusedError(
            f"{path} already exists", "Name another file, or move this one away.", code="exists"
        ) from error
    except OSError as error:
        raise RefusedError(
            f"can't write {path} ({error.strerror or error})", code="not_written"
        ) from error
    if not printed_as_json({"path": str(path)}):
        click.echo(f"wrote {path}. Edit it, then: {then}")
