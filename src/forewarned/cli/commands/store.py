"""Maintenance of a server's store, on its own machine, while the server is stopped."""

from pathlib import Path

import click

from forewarned.cli.commands.serve import data_folder, folder_options
from forewarned.cli.failures import RefusedError
from forewarned.cli.progress_bar import progress_bar
from forewarned.cli.session import json_option, printed_as_json
from forewarned.cli.stores.ends import opened_source, opened_target
from forewarned.cli.wording import count
from forewarned.security.state_directory import DATABASE
from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.errors import (
    CannotOpenError,
    StoreInUseError,
    UnwritableDirectoryError,
)
from forewarned.storage.sqlite.restore_marker import declare_restored
from forewarned.storage.transfer.transfer import copy as copy_store


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
    raises all incarnations, so that no VM mistakes a new document for one that it has read before.
    """
    path = data_folder(config, data).absolute() / DATABASE
    if not path.exists():
        raise RefusedError(
            f"there is no store in {path.parent}",
            "Give the server's directory with --data.",
            code="no_store",
        )
    try:
        declare_restored(path)
    except StoreInUseError as error:
        raise RefusedError(str(error), code="store_in_use") from error
    except UnwritableDirectoryError as error:
        raise RefusedError(str(error), code="unwritable_directory") from error
    if not printed_as_json({"path": str(path)}):
        click.echo("all incarnations will be raised at the next start")


@store.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--restart", is_flag=True, help="Discard an unfinished copy, and begin again.")
@json_option
def copy(*, source: str, target: str, restart: bool) -> None:
    """Copy a whole store into an empty one, and compare the two.

    FROM and TO are a server's data directory, or the URL of a PostgreSQL database:
    postgresql://USER@HOST/DATABASE. libpq finds the password in ~/.pgpass or PGPASSFILE, where
    other users of the machine can't see it.

    Stop the servers of both stores first. If a copy is interrupted, run the same command again: it
    continues where it stopped. No server opens TO before the copy is complete. Events,
    incarnations and history are copied too, so VMs see no difference.

    \b
    forewarned store copy .forewarned postgresql://forewarned@db1,db2/forewarned
    """
    try:
        with (
            progress_bar() as bar,
            opened_source(source) as from_store,
            opened_target(target) as to_store,
        ):
            task = bar.add_task("opening", total=None)
            copied = copy_store(
                from_store,
                to_store,
                restart=restart,
                progress=lambda what, done, total: bar.update(
                    task, description=what, completed=done, total=total
                ),
            )
    except CannotOpenError as error:
        raise RefusedError(str(error), code="not_copied") from error
    except StoreUnavailableError as error:
        raise RefusedError(
            f"the copy was interrupted: {error}",
            "Check that the disk works and has free space, and run the same command again.",
            code="not_copied",
        ) from error
    if printed_as_json({"rows": copied.rows, "resumed": copied.was_resumed}):
        return
    rows = copied.rows
    click.echo(
        f"copied {count(rows['scopes'], 'scope')}, {count(rows['resources'], 'VM')},"
        f" {count(rows['events'], 'event')} and {count(rows['history'], 'row')} of history;"
        " both stores are equal"
    )
    click.echo("Don't start a server on the old store again: VMs would read outdated documents.")
