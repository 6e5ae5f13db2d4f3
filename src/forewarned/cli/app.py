"""The root of the command line. Each command's module is imported when that command is wanted."""

import difflib
import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import click
from typing_extensions import override

from forewarned import __version__
from forewarned.cli.credentials import credential_options_or_variables
from forewarned.cli.failures import EPILOG, CommandError, ExitCode
from forewarned.cli.session import control_option_or_variable, json_option, report

PROGRAM: Final = "forewarned"

# In the order of `--help`: the server, what reads, what schedules, what decides, the rest.
COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "serve": "commands.serve",
        "settings": "commands.serve",
        "doctor": "doctor.command",
        "init": "init.command",
        "run": "commands.run",
        "exam": "exam.command",
        "scenario": "scenarios.commands",
        "record": "recording.command",
        "fleet": "fleet.commands",
        "events": "commands.events",
        "explain": "commands.events",
        "wait": "commands.event_wait",
        "history": "history.commands",
        "schedule": "commands.schedule",
        "maintain": "commands.schedule",
        "fail": "commands.schedule",
        "predict": "commands.schedule",
        "approve": "commands.decisions",
        "cancel": "commands.decisions",
        "complete": "commands.decisions",
        "clock": "commands.clock",
        "faults": "commands.faults",
        "tasks": "hosts.tasks",
        "sources": "hosts.sources",
        "subscription": "subscriptions.commands",
        "nodes": "stores.nodes",
        "host": "hosts.commands",
        "reset": "commands.reset",
        "env": "commands.environment",
        "ca": "commands.authority",
        "token": "commands.access",
        "store": "commands.store",
        "backup": "stores.backup",
        "restore": "stores.backup",
        "migrate": "stores.migration",
        "actuator": "actuators.commands",
        "agent": "agent.commands",
        "completion": "commands.completion",
    }
)


class _Root(click.Group):
    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        found: click.Command = getattr(
            importlib.import_module(f"forewarned.cli.{module}"), cmd_name
        )
        return _with_epilog(found)

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # click suggests from the commands it was given, and here it was given none.
        name = args[0]
        near = [] if name in COMMANDS else difflib.get_close_matches(name, COMMANDS, n=1)
        if near and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    @override
    def invoke(self, ctx: click.Context) -> Any:  # whatever a command returns
        # One place for every command: what a failure looks like must not depend on which it was.
        try:
            return super().invoke(ctx)
        except CommandError as error:
            report(error, ctx)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(ExitCode.INTERRUPTED)


def _with_epilog(command: click.Command) -> click.Command:
    command.epilog = EPILOG
    if isinstance(command, click.Group):
        for part in command.commands.values():
            _with_epilog(part)
    return command


@click.group(cls=_Root, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@json_option
@control_option_or_variable
@credential_options_or_variables
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
def cli() -> None:
    """Scheduled events for every virtual machine.

    Start a server with 'forewarned serve'; most other commands talk to a running server.
    """


def main() -> None:
    cli(prog_name=PROGRAM)
