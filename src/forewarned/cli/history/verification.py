"""`forewarned history verify`: reads the store itself, as an auditor wants it."""

from contextlib import AbstractContextManager
from pathlib import Path

import click

from forewarned.cli.commands.serve import folder_options
from forewarned.cli.failures import ExitCode, RefusedError, UsageError
from forewarned.cli.progress_bar import progress_bar
from forewarned.cli.session import json_option, printed_as_json
from forewarned.cli.stores.principal_places import place_of, store_option
from forewarned.cli.wording import count
from forewarned.config.values import DatabaseUrl
from forewarned.security.state_directory import DATABASE
from forewarned.storage.errors import CannotOpenError
from forewarned.storage.history.openings import opened_file
from forewarned.storage.history.verification import Head, Verified, parse_head
from forewarned.storage.history.verification import verify as verify_history
from forewarned.storage.relational.database import Database


@click.command()
@folder_options
@store_option
@click.option(
    "--head",
    metavar="NUMBER:DIGEST",
    help="Also compare with this head, printed by an earlier run.",
)
@json_option
def verify(*, config: Path | None, data: str | None, store: str | None, head: str | None) -> None:
    """Verify that history is what was written: nothing edited, removed, inserted or swapped.

    Reads the store itself and changes nothing; a server may run meanwhile. Every row is compared
    with the hash chain that the server keeps. Keep the printed head out of reach of those who can
    change the store, and give it with --head the next time: then a chain that was shortened or
    rewritten is found as well.

    Exits with 1 if anything is wrong, and says what.
    """
    place = place_of(config, data, store)
    wanted = _head(head)
    try:
        with progress_bar() as bar, _opened(place.folder, place.database) as database:
            task = bar.add_task("verifying", total=None)
            verified = verify_history(
                database,
                wanted,
                lambda done, total: bar.update(task, completed=done, total=total),
            )
    except CannotOpenError as error:
        raise RefusedError(str(error), code="not_verified") from error
    _print(verified)
    if verified.findings:
        click.get_current_context().exit(ExitCode.REFUSED)


def _head(text: str | None) -> Head | None:
    if text is None:
        return None
    try:
        return parse_head(text)
    except ValueError as error:
        raise UsageError(str(error), code="bad_head") from error


def _opened(folder: Path, url: DatabaseUrl | None) -> AbstractContextManager[Database]:
    if url is None:
        return opened_file(folder.absolute() / DATABASE)
    from forewarned.storage.history.openings import opened_database

    return opened_database(url)


def _print(verified: Verified) -> None:
    if printed_as_json(
        {
            "verified": verified.checked,
            "unchained": verified.unchained,
            "removed": verified.removed,
            "head": str(verified.head),
            "findings": [found._asdict() for found in verified.findings],
        }
    ):
        return
    for found in verified.findings:
        click.echo(found.message)
    click.echo(f"unchanged since written: {count(verified.checked, 'row')}")
    if verified.removed:
        click.echo(f"removed by retention: {count(verified.removed, 'row')}")
    if verified.unchained:
        click.echo(f"not chained yet, can't be verified: {count(verified.unchained, 'row')}")
    click.echo(f"head {verified.head}")
