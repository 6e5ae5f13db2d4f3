"""The file of principals: people and programs outside the fleet, and what each may do.

It holds only digests, so reading it is not enough to sign in. While the file can't be read, no one
in it is admitted, and the log says why.
"""

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec

from forewarned.config.mistakes import ExpectedError, KeyPath, MistakesError
from forewarned.config.tables import TableReader
from forewarned.config.toml import TomlFile
from forewarned.config.values import matching
from forewarned.security.files import fingerprint, locked, private_directory, replace_file
from forewarned.security.identities import LOCAL_USER, Principal, Role

_log = logging.getLogger(__name__)

FILE: Final = "principals.toml"

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
"""What the history can show, and a command line needs no quotes for."""
_CLIENT_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_LARGEST: Final = 4 << 20

_TABLE: Final = "principals"
_HEADER: Final = """\
# Who may operate this server. `forewarned token` writes this file, and a running server reloads it.
# Secrets are stored as SHA-256 digests.
"""


class PrincipalsError(MistakesError):
    pass


def _instant(value: object) -> datetime:
    # A time without an offset would mean another instant on another machine.
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ExpectedError("an instant, like 2027-01-31T12:00:00Z")
    return value


_Digest = Annotated[str, matching(_SHA256, "64 hexadecimal digits in lower case")]


class _PrincipalTable(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[
        str,
        matching(NAME, "up to 64 letters, digits and . _ @ -, beginning with a letter or digit"),
    ]
    role: Role
    token_sha256: _Digest = ""
    client_id: Annotated[str, matching(_CLIENT_ID, "up to 64 letters, digits and -")] = ""
    secret_sha256: _Digest = ""
    expires_at: Annotated[datetime | None, _instant] = None

    def __post_init__(self) -> None:
        given = (bool(self.token_sha256), bool(self.client_id), bool(self.secret_sha256))
        if given not in {(True, False, False), (False, True, True)}:
            raise ValueError("a principal has either token_sha256, or client_id and secret_sha256")
        if self.client_id.lower() == LOCAL_USER.subject:
            raise ValueError(f"the client id {LOCAL_USER.subject!r} is reserved for the emulator")


class PrincipalsFile:
    """Reads the file again whenever it has changed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._seen: tuple[int, ...] | None = None
        self._principals: Sequence[Principal] = ()

    def check(self) -> None:
        """Raises PrincipalsError."""
        load(self._path)

    def current(self) -> Sequence[Principal]:
        seen = fingerprint(self._path)
        if seen != self._seen:
            try:
                self._principals = load(self._path)
            except PrincipalsError as error:
                # The change may have been made to revoke one of those read before.
                self._principals = ()
                _log.error(
                    "the principals file can't be read, so all its tokens are refused",
                    extra={"why": str(error)},
                )
            self._seen = seen
        return self._principals


# --- reading -------------------------------------------------------------------------------------


def load(path: Path) -> tuple[Principal, ...]:
    """Empty where there is no file. Raises PrincipalsError."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise PrincipalsError([f"{path}: can't be read ({error.strerror})"]) from error
    if len(raw) > _LARGEST:
        raise PrincipalsError([f"{path}: is larger than {_LARGEST >> 20} MiB"])
    try:
        return parse(raw.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise PrincipalsError([f"{path}: is not UTF-8"]) from error


def parse(text: str, source: str = FILE) -> tuple[Principal, ...]:
    """Raises PrincipalsError."""
    file = TomlFile.parse(text, source=source, error=PrincipalsError)
    reader = TableReader()
    for key in file.tables.keys() - {_TABLE}:
        reader.refuse((key,), f"there is no such table; each principal is a table [[{_TABLE}]]")
    tables = file.tables.get(_TABLE, [])
    if not isinstance(tables, list):
        reader.refuse((_TABLE,), f"each principal is a table [[{_TABLE}]]")
        tables = []
    found: list[Principal] = []
    for index, raw in enumerate(tables):
        table = reader.table(raw, _PrincipalTable, (_TABLE, index))
        if table is not None:
            principal = Principal(**msgspec.structs.asdict(table))
            _refuse_double(principal, found, (_TABLE, index), reader)
            found.append(principal)
    if reader.mistakes:
        raise file.refusal(reader.mistakes)
    return tuple(found)


def _refuse_double(
    principal: Principal, others: Iterable[Principal], path: KeyPath, reader: TableReader
) -> None:
    for other in others:
        if same_name(other, principal.name):
            reader.refuse((*path, "name"), f"the name {principal.name!r} is given twice")
        if principal.client_id and other.client_id.lower() == principal.client_id.lower():
            why = f"the client id {principal.client_id!r} is given twice"
            reader.refuse((*path, "client_id"), why)
        if principal.token_sha256 and other.token_sha256 == principal.token_sha256:
            reader.refuse((*path, "token_sha256"), "two principals have the same token")


def same_name(principal: Principal, name: str) -> bool:
    return principal.name.lower() == name.lower()


# --- writing -------------------------------------------------------------------------------------


def render(principals: Iterable[Principal]) -> str:
    return "\n".join([_HEADER, *map(_table, principals)])


def _table(principal: Principal) -> str:
    fields = {"name": principal.name, "role": principal.role.value}
    for name in ("token_sha256", "client_id", "secret_sha256"):
        if value := getattr(principal, name):
            fields[name] = value
    # A string of JSON is one of TOML too, as long as it is of such characters as these.
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    if principal.expires_at is not None:
        lines.append(f"expires_at = {principal.expires_at.isoformat()}")
    return "\n".join([f"[[{_TABLE}]]", *lines, ""])


@contextmanager
def edited(folder: Path) -> Iterator[list[Principal]]:
    """The principals, to be changed in place. Edits wait for each other.

    Raises PrincipalsError.
    """
    path = folder / FILE
    try:
        private_directory(folder)
        with locked(path.with_name(f"{FILE}.lock")):
            principals = list(load(path))
            before = tuple(principals)
            yield principals
            if tuple(principals) != before:
                content = render(principals).encode()
                replace_file(path, content, adjust=lambda file: _give_to_owner_of(folder, file))
    except OSError as error:
        raise PrincipalsError([f"{path}: can't be written ({error.strerror})"]) from error


def _give_to_owner_of(folder: Path, file: int) -> None:
    """What root writes for a server that is not root must be readable by that server."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(file, owner.st_uid, owner.st_gid)
