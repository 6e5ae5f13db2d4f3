"""Maintenance of a server's store, on its own machine, while the server is stopped."""

from pathlib import Path

import click

from forewarned.cli.commands.serve import data_folder, folder_options
from forewarned.cli.failures import RefusedError
from forewarned.cli.session import json_option, printed_as_json
from forewarned.security.state_directory import DATABASE
from forewarned.storage.errors import CannotOpenError
from forewarned.storage.sqlite.restore_marker import declare_restored


@click.group()
def store() -> None:
    """Maintain the store of a stopped server."""


@store.command()
@folder_options
@json_option
def restored(*, config: Path | None, data: str | None) -> None:
    """Report that the store was restored from a backup or a snapshot.

    A server detects this by itself if files were copied or unpacked. It can't if a whole disk or
    virtual machine was rolled back: then run this before the server starts. At its next start it
    raises all incarnations, so that no VM mistakes what it reads for something older.
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
    if not printed_as_json({"path": str(path)}):
        click.echo("all incarnations will be raised at the next start")
