"""Hints to look at the store now: a notice that something was committed, and nothing else.

A hint that is lost costs a node the rest of its pause between two looks. So hints are sent apart
from what they are about: inside of its transaction a NOTIFY would make all commits wait for each
other.
"""

from typing import Final

from forewarned.storage.postgres.connection import Connection, is_direct

PAUSE: Final = 50_000_000
"""Nanoseconds between two hints of a node: within as long the others look by themselves."""
_CHANNEL: Final = "forewarned"
_NOTIFY: Final = f"""
    BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {_CHANNEL}; COMMIT
"""


class Hints:
    """Those of one connection, which must be in autocommit."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._own = connection.info.backend_pid
        self._sent_at = -PAUSE
        self._is_hinted = False

    def listen(self) -> None:
        """Does nothing where the session is lent: hints would come to its next user."""
        if is_direct(self._connection):
            # Those that come while a question is answered.
            self._connection.add_notify_handler(lambda notify: self._note(notify.pid))
            self._connection.execute(f"LISTEN {_CHANNEL}".encode())

    def take(self) -> bool:
        """Whether another node has sent a hint since this was last called."""
        pgconn = self._connection.pgconn
        pgconn.consume_input()
        while (notify := pgconn.notifies()) is not None:
            self._note(notify.be_pid)
        is_hinted, self._is_hinted = self._is_hinted, False
        return is_hinted

    def rest(self, now: int) -> int:
        """Nanoseconds until one may be sent."""
        return max(0, self._sent_at + PAUSE - now)

    def send(self, now: int) -> None:
        self._sent_at = now
        self._connection.execute(_NOTIFY.encode())

    def _note(self, pid: int) -> None:
        self._is_hinted = self._is_hinted or pid != self._own
