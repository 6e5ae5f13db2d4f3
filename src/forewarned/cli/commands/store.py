"""A server's store, looked after on its own machine while the server is stopped."""

from pathlib import Path

import click
import msgspec

from forewarned.cli.commands.serve import data_folder, folder_options
from forewarned.cli.failures import RefusedError
from forewarned.cli.session import json_option, wants_json
from forewarned.security.state_directory import DATABASE
from forewarned.storage.errors import CannotOpenError
from forewarned.storage.sqlite.restore_marker import declare_restored


@click.group()
def store() -> None:
    """Look after the store of a server that is stopped."""


@store.command()
@folder_options
@json_option
def restored(*, config: Path | None, data: str | None) -> None:
    """Say that the store was brought back from a backup or a snapshot.

    A server finds out by itself where files were copied or unpacked. It can't where a whole disk or
    virtual machine was set back: run this then, before the server starts. At its next start it
    raises all incarnations, so that no VM takes what it reads for older than what it has seen.
    """
    path = data_folder(config, data).absolute() / DATABASE
    if not path.exists():
        raise RefusedError(
            f"there is no store in {path.parent}",
            code="no_store",
            advice=["Give the server's directory with --data."],
        )
    try:
        declare_restored(path)
    except CannotOpenError as error:
        raise RefusedError(str(error), code="store_in_use") from error
    if wants_json(click.get_current_context()):
        click.echo(msgspec.json.encode({"path": str(path)}))
    else:
        click.echo("all incarnations will be raised at the next start")
