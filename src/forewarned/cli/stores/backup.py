"""Backing up a server's state, and restoring it to an empty place."""

from pathlib import Path

import click

from forewarned import __version__
from forewarned.cli.commands.serve import folder_options
from forewarned.cli.failures import RefusedError
from forewarned.cli.session import json_option, printed_as_json
from forewarned.cli.stores.principal_places import Place, place_of, store_option
from forewarned.clock import wall_clock
from forewarned.security import state_directory
from forewarned.security.state_directory import DATABASE, StateDirectoryError
from forewarned.storage.backup import directory, sqlite_copy
from forewarned.storage.backup.directory import BackupError, Manifest, StoreKind
from forewarned.storage.errors import CannotOpenError


@click.command()
@click.argument("target", metavar="DIRECTORY", type=click.Path(path_type=Path))
@folder_options
@store_option
@json_option
def backup(*, target: Path, config: Path | None, data: str | None, store: str | None) -> None:
    """Back up a server's state, whether it is running or not.

    DIRECTORY is created. It contains the store as of one moment, the server's keys and
    certificates, and the digests of its tokens. It appears under its name only once it has been
    verified. Keep it as safe as the data directory. The settings file is not in it. Run this as the
    server's user, or as root.

    For nodes that share a PostgreSQL database, pg_dump backs up the store; give the database with
    --store if the settings don't name it. The keys are those of the node on this machine.
    """
    place = place_of(config, data, store)
    try:
        made = _made(target.absolute(), place)
    except (BackupError, CannotOpenError) as error:
        raise RefusedError(str(error), code="not_backed_up") from error
    size = sum(each.bytes for each in made.files.values())
    if printed_as_json(_facts(target, made)):
        return
    click.echo(
        f"backed up the store (schema {made.schema}) and {_files(len(made.keys))} into"
        f" {target}: {size:,} bytes, verified"
    )


def _made(target: Path, place: Place) -> Manifest:
    folder = place.folder.absolute()
    with directory.drafted(target) as draft:
        if place.database is None:
            kind = StoreKind.SQLITE
            schema = sqlite_copy.copy_database(folder / DATABASE, draft / directory.DATABASE_FILE)
        else:
            from forewarned.storage.backup import postgres_dump  # may not be installed

            kind = StoreKind.POSTGRESQL
            schema = postgres_dump.dump_database(place.database, draft)
        directory.copy_kept(folder, draft)
        return directory.write_manifest(
            draft, version=__version__, at=wall_clock(), store=kind, schema=schema
        )


@click.command()
@click.argument("source", metavar="DIRECTORY", type=click.Path(path_type=Path))
@folder_options
@store_option
@json_option
def restore(*, source: Path, config: Path | None, data: str | None, store: str | None) -> None:
    """Restore a backup, where no store exists yet.

    Nothing is overwritten: the data directory must have no store, and the PostgreSQL database no
    tables. Stop the servers first. The next start raises all incarnations, so that no VM mistakes a
    new document for one that it has read before. What was scheduled, approved or canceled since the
    backup is lost. Events that were due meanwhile start late; none starts early.

    Run this as the server's user, so that this user owns the files.
    """
    place = place_of(config, data, store)
    try:
        found = directory.verified(source)
        restored = _restored(source.absolute(), found, place)
    except (BackupError, CannotOpenError, StateDirectoryError) as error:
        raise RefusedError(str(error), code="not_restored") from error
    except OSError as error:
        raise RefusedError(
            f"can't write to {place.folder} ({error.strerror or error})", code="not_restored"
        ) from error
    if printed_as_json(_facts(source, found) | {"restored": restored}):
        return
    click.echo(
        f"restored the store of {found.at:%Y-%m-%d %H:%M:%S} UTC (schema {found.schema}) and"
        f" {_files(len(restored))}"
    )
    click.echo("All incarnations will be raised at the next start.")


def _restored(source: Path, found: Manifest, place: Place) -> list[str]:
    """The names of the files that went into the data directory."""
    folder = place.folder.absolute()
    is_dump = found.store is StoreKind.POSTGRESQL
    if is_dump and place.database is None:
        raise BackupError(
            "this is a backup of a PostgreSQL database, but the server is set to use a SQLite"
            " store: name the database with --store, or use other settings"
        )
    if not is_dump and place.database is not None:
        raise BackupError(
            "this is a backup of a SQLite store, but the server is set to use a PostgreSQL"
            " database: omit --store, or use other settings"
        )
    if place.database is None:
        if (folder / DATABASE).exists():
            raise BackupError(
                f"{folder / DATABASE} already exists: a restore never overwrites a store. Restore"
                " to an empty directory, or move the old store away"
            )
        state_directory.prepare_private(folder)
        kept = directory.restore_kept(source, folder, found)
        sqlite_copy.restore_database(source / directory.DATABASE_FILE, folder / DATABASE)
        return kept
    from forewarned.storage.backup import postgres_dump  # may not be installed

    postgres_dump.restore_dump(place.database, source / directory.DUMP_FILE)
    state_directory.prepare_private(folder)
    # Each node has keys of its own: one that still has them goes on with those.
    if any((folder / name).exists() for name in found.keys):
        return []
    return directory.restore_kept(source, folder, found)


def _files(number: int) -> str:
    return "1 other file" if number == 1 else f"{number} other files"


def _facts(place: Path, found: Manifest) -> dict[str, object]:
    return {
        "path": str(place),
        "version": found.version,
        "at": found.at.isoformat(),
        "store": found.store.value,
        "schema": found.schema,
        "files": {name: each.bytes for name, each in found.files.items()},
    }
