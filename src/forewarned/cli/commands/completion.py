"""Scripts with which a shell completes commands, VM names and event ids."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a shell's completion script.

    For bash: eval "$(forewarned completion bash)". Names of VMs and ids of events come from the
    server, if it is running.
    """
    from forewarned.cli.app import PROGRAM, cli

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover  # each of the three is part of click
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(cli, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
