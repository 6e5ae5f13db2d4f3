"""Why a store can't be opened, and the errors of decisions that a store refuses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from forewarned.service.errors import StoreUnavailableError


class CannotOpenError(StoreUnavailableError):
    """The store can't be opened until an operator does what the message says."""


class StoreInUseError(CannotOpenError):
    def __init__(self, path: Path, holder: str) -> None:
        who = f"process {holder}" if holder else "another process"
        super().__init__(
            f"{path} is in use by {who}: stop that server, or give this one its own directory"
        )
        self.path = path
        self.holder = holder


class NewerDatabaseError(CannotOpenError):
    def __init__(self, where: Path | str, found: int, known: int) -> None:
        super().__init__(
            f"{where} was written by a newer Forewarned (schema {found}, this version supports"
            f" {known}): install that version or a later one, or restore a backup from before the"
            " upgrade"
        )
        self.where = where
        self.found = found
        self.known = known


class OlderDatabaseError(CannotOpenError):
    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"{where} was written by an older Forewarned (schema {found}, this version uses"
            f" {known}): run `forewarned migrate` first"
        )
        self.found = found
        self.known = known


class UnfinishedCopyError(CannotOpenError):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is an unfinished copy of another store: run the same `forewarned store copy`"
            " again, which continues where it stopped"
        )


class ForeignDatabaseError(CannotOpenError):
    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is not a Forewarned database: move it, or choose another")
        self.path = path


class UnwritableDirectoryError(CannotOpenError):
    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(
            f"can't write to {directory} ({reason}): let the server's user write there, or choose"
            " another directory"
        )
        self.directory = directory


class CannotTakeOverError(CannotOpenError):
    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(
            f"can't rename {directory} and the database in it, which were made under the product's"
            f" old name: {reason}"
        )
        self.directory = directory


class NoWriteAheadLogError(CannotOpenError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the file system of {path} does not support SQLite's write-ahead log: choose a"
            " directory "
            "on a local disk"
        )
        self.path = path


class OldSqliteError(CannotOpenError):
    def __init__(self, found: str, needed: str) -> None:
        super().__init__(f"SQLite {found} is too old: Forewarned needs {needed} or later")
        self.found = found
        self.needed = needed


# --- PostgreSQL ----------------------------------------------------------------------------------

# `where` is how messages call the database. It holds no password.


class CannotConnectError(CannotOpenError):
    """The database can't be connected to, for another reason than those below."""

    advice: ClassVar[str] = "correct the setting `store`, or see PostgreSQL's log"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"can't connect to {where} ({reason}): {self.advice}")
        self.reason = reason


class UnreachableDatabaseError(CannotConnectError):
    advice = "start PostgreSQL, or correct the host and port in the setting `store`"


class SignInRefusedError(CannotConnectError):
    advice = (
        "correct the user name and password in the setting `store`, in the password file, or in"
        " PostgreSQL's pg_hba.conf"
    )


class NoSuchDatabaseError(CannotConnectError):
    advice = "create it with `createdb`, or correct its name in the setting `store`"


class ReadOnlyDatabaseError(CannotConnectError):
    advice = "list every host in the setting `store`, the primary too, separated by commas"


class UntrustedCertificateError(CannotConnectError):
    advice = (
        "in the setting `store`, add sslrootcert=FILE, where FILE has the certificate of the"
        " authority that issued PostgreSQL's; if FILE is right, check whether PostgreSQL's"
        " certificate has expired"
    )


class OtherNameError(CannotConnectError):
    advice = (
        "in the setting `store`, use a host name that is in PostgreSQL's certificate, or give"
        " PostgreSQL a certificate for this one"
    )


class NoTlsError(CannotConnectError):
    advice = (
        "set ssl, ssl_cert_file and ssl_key_file in postgresql.conf, or change sslmode in the"
        " setting `store`"
    )


class OtherServerError(StoreUnavailableError):
    """The connection no longer leads to the server that it was opened to."""

    def __init__(self) -> None:
        super().__init__("the connection goes to a different server than before")


class ReplacedServerError(CannotOpenError):
    """The server still answers, but another has taken over from it."""

    def __init__(self, found: str, seen: str) -> None:
        super().__init__(
            f"this PostgreSQL server is on timeline {int(found, 16)}, and this node has seen"
            f" timeline {int(seen, 16)}. If the server is an old primary, it must not be used: stop"
            " it. If it was restored from a backup that is older than a failover, restore it again"
            " with a recovery.signal"
        )
        self.found = found
        self.seen = seen


class OldPostgresError(CannotOpenError):
    def __init__(self, where: str, found: str, needed: int) -> None:
        super().__init__(
            f"{where} is on PostgreSQL {found}, which is too old: Forewarned needs {needed} or"
            " later"
        )
        self.found = found
        self.needed = needed


class WrongEncodingError(CannotOpenError):
    def __init__(self, where: str, encoding: str) -> None:
        super().__init__(
            f"{where} has the encoding {encoding}, and Forewarned needs UTF8: create a database"
            " with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`"
        )
        self.encoding = encoding


class ForeignTablesError(CannotOpenError):
    def __init__(self, where: str, names: Sequence[str]) -> None:
        super().__init__(
            f"{where} has tables of another program ({', '.join(names)}): give Forewarned a"
            " database of its own"
        )
        self.names = tuple(names)


class MissingRightsError(CannotOpenError):
    def __init__(self, where: str, role: str, reason: str) -> None:
        super().__init__(
            f"{where} can't be used by role {role} ({reason}): make {role} the owner of the"
            " database and of Forewarned's tables"
        )
        self.role = role
        self.reason = reason


class MayNotReadError(CannotOpenError):
    def __init__(self, where: str, role: str, reason: str) -> None:
        super().__init__(
            f"{where} can't be read by role {role} ({reason}): grant {role} SELECT on Forewarned's"
            " tables, or use their owner"
        )
        self.role = role
        self.reason = reason


class MayNotMigrateError(CannotOpenError):
    def __init__(self, where: str, role: str, reason: str) -> None:
        super().__init__(
            f"{where} has to be migrated, which role {role} may not do ({reason}): run"
            f" `forewarned migrate` as the owner of the database, or make {role} the owner of it"
            " and of Forewarned's tables"
        )
        self.role = role
        self.reason = reason


class NoSchemaError(CannotOpenError):
    def __init__(self, where: str, role: str) -> None:
        super().__init__(
            f"{where} has none of the schemas in role {role}'s search_path: create one, or set"
            f" another search_path with `ALTER ROLE {role} SET search_path = …`"
        )
        self.role = role


class OlderNodesError(CannotOpenError):
    def __init__(self, where: str, nodes: Sequence[str]) -> None:
        super().__init__(
            f"{where} is used by servers that are more than one version older"
            f" ({', '.join(nodes)}): upgrade or stop them first"
        )
        self.nodes = tuple(nodes)


class BusyTablesError(CannotOpenError):
    def __init__(self, where: str) -> None:
        super().__init__(
            f"the migration of {where} waited a minute for locks that other sessions hold on its"
            " tables: find them in pg_stat_activity, end them, and start again"
        )


class LostConnectionError(CannotOpenError):
    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"the connection to {where} was lost ({reason}): check that PostgreSQL is running and"
            " can be reached, and try again"
        )
        self.reason = reason


class FailedDatabaseError(CannotOpenError):
    """PostgreSQL could not do what it was asked to, for another reason than those above."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"{where} failed ({reason}): check that its disk works and has free space, or read"
            " PostgreSQL's log, and try again"
        )
        self.reason = reason


class UnloadedScopeError(AssertionError):
    """A decision saved a scope that its transaction had not loaded: a defect, not a bad request."""

    def __init__(self, scope_id: str) -> None:
        super().__init__(f"scope {scope_id!r} was saved by a transaction that had not loaded it")
        self.scope_id = scope_id


class OtherRulesError(CannotOpenError):
    def __init__(
        self, where: str, *, nodes: Sequence[str], differing: Mapping[str, tuple[str, str]]
    ) -> None:
        listed = ", ".join(
            f"{name} is {theirs} there and {ours} here"
            for name, (theirs, ours) in differing.items()
        )
        super().__init__(
            f"other nodes on {where} run with different settings ({listed}): give this node the"
            f" same settings, or stop {', '.join(nodes)} and wait ten seconds"
        )
        self.nodes = tuple(nodes)
        self.differing = dict(differing)


class VanishedEventError(AssertionError):
    """A decision dropped an event without saying how it ended: a defect, not a bad request."""

    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} left its scope without being completed or canceled")
        self.event_id = event_id
