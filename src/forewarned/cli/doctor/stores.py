"""The store: whether it can be opened, is whole, and has this version's schema."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from forewarned.cli.doctor.finding import Finding, note, problem
from forewarned.config.values import DatabaseUrl
from forewarned.runtime.settings import Settings
from forewarned.security.state_directory import DATABASE
from forewarned.storage import upgrade
from forewarned.storage.errors import CannotOpenError
from forewarned.storage.examination import Examined, examine_file

_LONGEST_LEAD: Final = timedelta(minutes=5)
"""As the server has it when it starts."""


def examined(settings: Settings) -> Examined | None:
    """None if there is none, or none in a file. Raises CannotOpenError."""
    path = settings.data.absolute() / DATABASE
    return None if settings.store is not None or not path.is_file() else examine_file(path)


def of_file(settings: Settings, found: Examined, *, now: datetime) -> Iterator[Finding]:
    where = str(settings.data.absolute() / DATABASE)
    if found.damage:
        yield problem(
            "store_damaged",
            where=where,
            what=f"the database is damaged ({found.damage})",
            todo="Stop the server, keep the file, and run `forewarned restore` with the last backup"
            " into an empty directory.",
        )
        return
    if found.is_unfinished:
        yield problem(
            "store_unfinished",
            where=where,
            what="this is an unfinished copy of another store",
            todo="Run the same `forewarned store copy` again.",
        )
    if found.schema < found.newest:
        yield _to_migrate(where, found.schema, found.newest)
    last = found.last_change_at
    if settings.clock.is_real and last is not None and last - now > _LONGEST_LEAD:
        yield problem(
            "clock_behind_store",
            where=where,
            what=f"its last change was at {last:%Y-%m-%d %H:%M:%S} UTC, which is in the future:"
            " this machine's clock is wrong, or the store belongs to an emulator whose clock was"
            " moved",
            todo="Correct the machine's clock, or choose another directory with --data.",
        )


def of_database(url: DatabaseUrl) -> Iterator[Finding]:
    try:
        found = upgrade.schemas_of_database(url)
    except CannotOpenError as error:
        yield problem("store_unusable", where="the setting `store`", what=str(error))
        return
    if found.found < found.newest:
        yield _to_migrate(found.where, found.found, found.newest)


def unusable(error: CannotOpenError, settings: Settings) -> Finding:
    return problem(
        "store_unusable", where=str(settings.data.absolute() / DATABASE), what=str(error)
    )


def _to_migrate(where: str, found: int, newest: int) -> Finding:
    return note(
        "store_to_migrate",
        where=where,
        what=f"it has schema {found}, and this version uses {newest}",
        todo="The server migrates it when it starts. Back it up first: the migration can't be"
        " undone.",
    )
