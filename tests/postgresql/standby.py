"""A primary and a standby that streams from it: to be killed, promoted, and put together again."""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.postgresql.servers import DURABLE, PATIENCE, SUPERUSER, PostgresServer

_STREAMING: Final = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
_SYNCHRONOUS: Final = f"{_STREAMING} AND sync_state = 'sync'"
_HAS_ALL: Final = f"{_STREAMING} AND replay_lsn = pg_current_wal_lsn()"
_SETTINGS: Final = DURABLE | {
    # A standby that was down for a while finds what it missed; there is no archive.
    "wal_keep_size": "256MB",
    # How long a primary goes on believing in a standby that has died.
    "wal_sender_timeout": "5s",
    "wal_receiver_timeout": "5s",
    "wal_retrieve_retry_interval": "200ms",
}


class ServerPair:
    """Two servers of which one is the primary. A failover exchanges them.

    Invariant: as long as the pair is synchronous, no commit is answered that only one of them has.
    """

    def __init__(
        self, first: PostgresServer, second: PostgresServer, *, is_synchronous: bool
    ) -> None:
        self.primary = first
        self.other = second
        """The standby; after a failover the old primary, which is down until it rejoins."""
        self._is_synchronous = is_synchronous
        self._both = (first, second)

    def url(self, database: str = SUPERUSER) -> str:
        """Finds the primary, whichever of both it is."""
        hosts = ",".join(f"{server.host}:{server.port}" for server in self._both)
        return f"postgresql://{SUPERUSER}@{hosts}/{database}?target_session_attrs=read-write"

    def start(self) -> None:
        self.primary.create()
        self.primary.start()
        self.rejoin()

    def stop(self) -> None:
        # The standby first: the primary would wait for it to take the last of what was written.
        for server in (self.other, self.primary):
            server.stop(immediate=True)

    def rejoin(self) -> None:
        """Make the other one a standby anew, whatever it was. Returns once it streams."""
        self.other.stop(immediate=True)
        shutil.rmtree(self.other.data, ignore_errors=True)
        self.other.run(
            "pg_basebackup",
            f"--dbname={self.primary.url()}",
            f"--pgdata={self.other.data}",
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--no-sync",
        )
        self.other.start()
        if self._is_synchronous:
            self.primary.set("synchronous_standby_names", "*")
        self._wait_until_streaming()

    def fail_over(self) -> None:
        """Kill the primary, and promote the standby. The old primary stays down."""
        self.primary.kill()
        self.promote()

    def promote(self) -> None:
        """The standby takes over, and waits for no other. Whoever was the primary, is no more."""
        # Were it to wait for a standby from the start, it would wait for one that is down.
        self.other.set("synchronous_standby_names", "")
        self.other.promote()
        self.primary, self.other = self.other, self.primary

    def stop_streaming(self) -> None:
        """From now on the standby misses what is committed. Only if the pair is asynchronous."""
        assert not self._is_synchronous, "every commit would wait for the standby"
        self.wait_until_caught_up()
        # What the base backup has written down gives way to this.
        self.other.ask("ALTER SYSTEM SET primary_conninfo = ''")
        self.other.ask("SELECT pg_reload_conf()")
        _wait_until(lambda: self.primary.ask(_STREAMING) == [(0,)])

    def wait_until_caught_up(self) -> None:
        """Until the standby has all that is committed."""
        _wait_until(lambda: self.primary.ask(_HAS_ALL) == [(1,)])

    def _wait_until_streaming(self) -> None:
        query = _SYNCHRONOUS if self._is_synchronous else _STREAMING
        _wait_until(lambda: self.primary.ask(query) == [(1,)])


@contextlib.contextmanager
def server_pair(
    folder: Path, *, is_synchronous: bool = True, settings: Mapping[str, str] | None = None
) -> Iterator[ServerPair]:
    """Two running servers, in two folders below this one."""
    first, second = (
        PostgresServer(_subfolder(folder, name), settings=_SETTINGS | dict(settings or {}))
        for name in ("one", "two")
    )
    pair = ServerPair(first, second, is_synchronous=is_synchronous)
    try:
        pair.start()
        yield pair
    finally:
        pair.stop()


def _subfolder(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    shutil.chown(made, folder.stat().st_uid, folder.stat().st_gid)
    return made


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, "waited in vain for the standby"
        pause.wait(0.05)
