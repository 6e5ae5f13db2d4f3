"""Who may operate the server, where it asks for a token."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from forewarned.cli.doctor.finding import Finding, note, problem, warning
from forewarned.cli.stores.principal_places import Place
from forewarned.config.values import DatabaseUrl
from forewarned.runtime.settings import ControlAccess, Settings
from forewarned.security import principals
from forewarned.security.identities import Principal, Role
from forewarned.security.principals import PrincipalsError
from forewarned.storage.errors import CannotOpenError

_SOON: Final = timedelta(days=14)
_CREATE: Final = "Run `forewarned token create NAME --role admin` on the server's machine."


def of_tokens(settings: Settings, *, now: datetime) -> Iterator[Finding]:
    place = Place(folder=settings.data, database=settings.store)
    if place.database is None and place.folder.exists() and not place.folder.is_dir():
        return
    try:
        known = principals.load(place.file) if place.database is None else _shared(place.database)
    except PrincipalsError as error:
        for line in error.mistakes:
            where, _, what = line.partition(": ")
            yield problem(
                "bad_principals",
                where=where,
                what=f"{what}; the server refuses all tokens until the file is corrected",
                todo="Correct the line, or remove the file to revoke all tokens.",
            )
        return
    except CannotOpenError:
        # The database can't be asked, and the check of the store has said why.
        return
    yield from _of_principals(known, place.file, settings, now=now)


def _shared(url: DatabaseUrl) -> Sequence[Principal]:
    # Not as `forewarned token` does, which makes the tables if there are none.
    from forewarned.storage.postgres.nodes.principals import read  # may not be installed

    return read(url)


def _of_principals(
    known: Sequence[Principal], file: Path, settings: Settings, *, now: datetime
) -> Iterator[Finding]:
    where = "the database" if settings.store is not None else str(file)
    asked = settings.control_access is ControlAccess.TOKEN
    if asked and not any(each.role is Role.ADMIN and not each.is_expired(now) for each in known):
        yield warning(
            "no_admin",
            where=where,
            what="a token is required, and no admin has one that is valid",
            todo=_CREATE,
        )
    for each in known:
        if each.expires_at is None:
            continue
        if each.is_expired(now):
            yield note(
                "token_expired",
                where=where,
                what=f"the token of {each.name} expired on {each.expires_at:%Y-%m-%d %H:%M} UTC",
                todo=f"`forewarned token revoke {each.name}` removes it.",
            )
        elif each.expires_at - now < _SOON:
            yield warning(
                "token_expires",
                where=where,
                what=f"the token of {each.name} expires on {each.expires_at:%Y-%m-%d %H:%M} UTC",
                todo="Create another before that, under another name.",
            )
