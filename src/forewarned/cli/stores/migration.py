"""Bringing a store to the schema of this version."""

from pathlib import Path

import click

from forewarned.cli.commands.serve import folder_options
from forewarned.cli.failures import RefusedError
from forewarned.cli.session import json_option, printed_as_json
from forewarned.cli.stores.principal_places import place_of, store_option
from forewarned.security.state_directory import DATABASE
from forewarned.service.errors import StoreUnavailableError
from forewarned.storage import upgrade
from forewarned.storage.errors import CannotOpenError


@click.command()
@folder_options
@store_option
@click.option(
    "--check", is_flag=True, help="Change nothing; exit with 1 if there is anything to migrate."
)
@json_option
def migrate(*, config: Path | None, data: str | None, store: str | None, check: bool) -> None:
    """Bring the store to the schema of this version.

    A server does so when it starts. This is for a database whose nodes sign in with a role that may
    not change its tables: run it with a role that owns them, then start the new version. Nodes of
    the previous version keep working. A server that does not share its store has to be stopped.
    """
    place = place_of(config, data, store)
    path = place.folder.absolute() / DATABASE
    try:
        if place.database is None:
            found = upgrade.schemas_of_file(path) if check else upgrade.migrate_file(path)
        elif check:
            found = upgrade.schemas_of_database(place.database)
        else:
            found = upgrade.migrate_database(place.database)
    except CannotOpenError as error:
        raise RefusedError(str(error), code="not_migrated") from error
    except StoreUnavailableError as error:
        raise RefusedError(
            f"{path} was not migrated: {error}",
            "Check that its disk works and has free space, and run the command again.",
            code="not_migrated",
        ) from error
    # Nodes of a rolling upgrade may find the next version's.
    is_current = found.found >= found.newest
    if check and not is_current:
        raise RefusedError(
            f"{found.where} has schema {found.found}, and this version uses {found.newest}",
            "Run 'forewarned migrate' without --check.",
            code="to_migrate",
        )
    now = max(found.found, found.newest)
    if printed_as_json({"before": found.found, "schema": now}):
        return
    if is_current:
        click.echo(f"{found.where} has schema {now}: there is nothing to do")
    else:
        click.echo(f"migrated {found.where} from schema {found.found} to {now}")
