"""Why a store can't be opened, and the one error of a decision that a store refuses."""

from pathlib import Path

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
    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} was written by a newer Forewarned (schema {found}, this version supports"
            f" {known}): install that version or a later one, or restore a backup from before the"
            " upgrade"
        )
        self.path = path
        self.found = found
        self.known = known


class ForeignDatabaseError(CannotOpenError):
    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is not a Forewarned database: move it, or choose another")
        self.path = path


class UnwritableDirectoryError(CannotOpenError):
    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(
            f"can't write to {directory} ({reason}): create it, or choose another directory"
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
            f"the file system of {path} can't hold SQLite's write-ahead log: choose a directory "
            "on a local disk"
        )
        self.path = path


class OldSqliteError(CannotOpenError):
    def __init__(self, found: str, needed: str) -> None:
        super().__init__(f"SQLite {found} is too old: Forewarned needs {needed} or later")
        self.found = found
        self.needed = needed


class VanishedEventError(AssertionError):
    """A decision dropped an event without saying how it ended: a defect, not a bad request."""

    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} left its scope without being completed or canceled")
        self.event_id = event_id
