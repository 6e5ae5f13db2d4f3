"""The file of the people and programs outside the fleet that may steer it, and what they may do.

It holds digests alone: whoever reads it can sign in as nobody. A file that can't be read admits
nobody, and the log says why.
"""

import fcntl
import json
import logging
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from forewarned.config.toml import KeyPath, key_lines, line_of, load_toml
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
# Who may operate this server. `forewarned token` writes this file; a running server notices.
# Secrets are kept as SHA-256 digests.
"""
_FORMS: Final = {
    "name": (NAME, "up to 64 letters, digits and . _ @ -, with a letter or digit first"),
    "client_id": (_CLIENT_ID, "up to 64 letters, digits and -"),
    "token_sha256": (_SHA256, "64 hexadecimal digits in lower case"),
    "secret_sha256": (_SHA256, "64 hexadecimal digits in lower case"),
}


class PrincipalsError(Exception):
    """All that is wrong with the file, a line each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class PrincipalsFile:
    """Reads the file anew whenever it has changed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._seen: tuple[int, ...] | None = None
        self._principals: Sequence[Principal] = ()

    def check(self) -> None:
        """Raises PrincipalsError."""
        load(self._path)

    def current(self) -> Sequence[Principal]:
        seen = _mark(self._path)
        if seen != self._seen:
            try:
                self._principals = load(self._path)
            except PrincipalsError as error:
                # Those of before may be just the ones who were to be shut out.
                self._principals = ()
                _log.error(
                    "the file of principals can't be read, so nobody in it is admitted",
                    extra={"why": str(error)},
                )
            self._seen = seen
        return self._principals


def _mark(path: Path) -> tuple[int, ...]:
    """Differs whenever the file does. Empty for no file."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


# --- reading -------------------------------------------------------------------------------------


def load(path: Path) -> tuple[Principal, ...]:
    """None are in a file that is not there. Raises PrincipalsError."""
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
    # TOML takes either end of a line, and so does what counts them.
    text = text.replace("\r\n", "\n")
    try:
        content = load_toml(text)
    except ValueError as error:
        raise PrincipalsError([f"{source}: {error}"]) from error
    lines = key_lines(text)
    problems: list[tuple[int, str]] = []

    def refuse(path: KeyPath, why: str) -> None:
        problems.append((line_of(path, lines), why))

    for key in sorted(content.keys() - {_TABLE}):
        refuse((key,), f"{key!r} is not known; each principal is a table [[{_TABLE}]]")
    tables = content.get(_TABLE, [])
    found: list[Principal] = []
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        refuse((_TABLE,), f"each principal is a table [[{_TABLE}]]")
        tables = []
    for index, table in enumerate(tables):
        principal = _principal(table, (_TABLE, index), refuse)
        if principal is not None:
            _refuse_double(principal, found, (_TABLE, index), refuse)
            found.append(principal)
    if problems:
        raise PrincipalsError(f"{source}:{line}: {why}" for line, why in sorted(problems))
    return tuple(found)


_Refuse = Callable[[KeyPath, str], None]


def _principal(table: dict[str, Any], path: KeyPath, refuse: _Refuse) -> Principal | None:
    is_sound = True

    def wrong(key: str, why: str) -> None:
        nonlocal is_sound
        is_sound = False
        refuse((*path, key), why)

    for key in sorted(table.keys() - {*_FORMS, "role", "expires_at"}):
        wrong(key, f"{key!r} is not known; known are role, expires_at, {', '.join(_FORMS)}")
    for key, (form, meaning) in _FORMS.items():
        if key in table and not (isinstance(table[key], str) and form.fullmatch(table[key])):
            wrong(key, f"{key} must be {meaning}")
    if "name" not in table:
        wrong("name", "a principal has no name")
    if table.get("role") not in list(Role):
        wrong("role", f"role must be one of {', '.join(Role)}")
    expires_at = table.get("expires_at")
    # A time without an offset would mean another instant on another machine.
    if "expires_at" in table and not (
        isinstance(expires_at, datetime) and expires_at.tzinfo is not None
    ):
        wrong("expires_at", "expires_at must be an instant, like 2027-01-31T12:00:00Z")
    given = {"token_sha256", "client_id", "secret_sha256"} & table.keys()
    if given not in ({"token_sha256"}, {"client_id", "secret_sha256"}):
        wrong("", "a principal has either token_sha256, or client_id and secret_sha256")
    if str(table.get("client_id", "")).lower() == LOCAL_USER.subject:
        wrong("client_id", f"the client id {LOCAL_USER.subject!r} is the emulator's own")
    if not is_sound:
        return None
    return Principal(**(table | {"role": Role(table["role"])}))


def _refuse_double(
    principal: Principal, others: Iterable[Principal], path: KeyPath, refuse: _Refuse
) -> None:
    for other in others:
        if same_name(other, principal.name):
            refuse((*path, "name"), f"the name {principal.name!r} is given twice")
        if principal.client_id and other.client_id.lower() == principal.client_id.lower():
            refuse((*path, "client_id"), f"the client id {principal.client_id!r} is given twice")
        if principal.token_sha256 and other.token_sha256 == principal.token_sha256:
            refuse((*path, "token_sha256"), "two principals have the same token")


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
    """The principals, to be changed in place; written whole, by one at a time.

    Raises PrincipalsError.
    """
    path = folder / FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.with_name(f"{FILE}.lock").touch(mode=0o600)
        with path.with_name(f"{FILE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            principals = list(load(path))
            before = tuple(principals)
            yield principals
            if tuple(principals) != before:
                _write(path, render(principals))
    except OSError as error:
        raise PrincipalsError([f"{path}: can't be written ({error.strerror})"]) from error


def _write(path: Path, text: str) -> None:
    new = path.with_name(f".{FILE}.{secrets.token_hex(4)}")
    try:
        # Nobody else can read it, from its first moment on.
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())
        _give_to_owner(new, of=path.parent)
        new.replace(path)
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _give_to_owner(file: Path, *, of: Path) -> None:
    """What root writes for a server that is not root must be that server's to read."""
    if os.geteuid() == 0:
        owner = of.stat()
        os.chown(file, owner.st_uid, owner.st_gid)
