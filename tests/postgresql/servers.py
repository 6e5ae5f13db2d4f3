"""A real PostgreSQL server of a test's own: in a private directory, at a private port of loopback.

Nothing here needs pytest, so `make cluster` and benchmarks start their servers with it too.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import psycopg

from tests.packages import install

PACKAGE: Final = "postgresql"
SUPERUSER: Final = "postgres"
LOOPBACK: Final = "127.0.0.1"
PATIENCE: Final = 60.0
"""Seconds until a start or an end is given up. A busy machine takes long for both."""
_POLL: Final = 0.02
_MEMORY: Final = Path("/dev/shm")
_ROOM: Final = 4 * 1024**3
"""Bytes that have to be free there. A container may have as good as none."""
_QUICK: Final = {
    # Nothing here outlives the machine, so nothing needs to reach a disk.
    "fsync": "off",
    "full_page_writes": "off",
    # As in front of a small cluster: three nodes with all of their connections, and tests beside.
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_size": "128MB",
    "log_line_prefix": "%m [%p] %a ",
}
DURABLE: Final = {"fsync": "on", "full_page_writes": "on"}
"""As where a host can fail: for servers that a test kills, stops, restores or cuts off."""
_ACCESS: Final = """
# Roles that have to show a password are members of this one; a test makes both.
host   all         +password_required  all          scram-sha-256
local  all         all                              trust
host   all         all                 127.0.0.0/8  trust
local  replication all                              trust
host   replication all                 127.0.0.0/8  trust
# Servers in network namespaces.
host   all         all                 10.0.0.0/8   trust
host   replication all                 10.0.0.0/8   trust
"""


class NoServerError(Exception):
    """PostgreSQL's server is not installed here."""

    def __init__(self) -> None:
        super().__init__(
            f"PostgreSQL's server is not installed: `apt install {PACKAGE}` brings it, or put"
            " the folder of its initdb on PATH"
        )


def programs() -> Path:
    """The folder of initdb, postgres, pg_ctl and the rest. Debian does not put it on the path."""
    if found := installed():
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        forgo_cluster()
        install(PACKAGE)
    if found := installed():
        return found
    raise NoServerError


def forgo_cluster() -> None:
    """The package would make a server that runs all the time, at a port others may want."""
    settings = Path("/etc/postgresql-common/createcluster.d")
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "forewarned-tests.conf").write_text("create_main_cluster = false\n")


def installed() -> Path | None:
    packaged = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    if packaged:
        return packaged[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def free_port() -> int:
    """Below the ports that connections get by themselves: it is still free after a restart."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Not one of pytest's, which are closed to others: PostgreSQL refuses to run as root.

    In memory, if there is room: each database has 300 files, and some disks take long over them.
    """
    is_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    with tempfile.TemporaryDirectory(
        prefix="forewarned-postgres-",
        dir=_MEMORY if is_room else None,
        ignore_cleanup_errors=True,
    ) as name:
        if os.geteuid() == 0:
            shutil.chown(name, SUPERUSER, SUPERUSER)
        yield Path(name)


def as_postgres() -> list[str]:
    """What to put before a command of PostgreSQL's.

    A server outlives no one who was killed before they could stop it, where that can be had. The
    kernel means the thread that starts the server, so start it from one that lasts.
    """
    if shutil.which("setpriv") is None:
        return []
    words = ["setpriv", "--pdeathsig=QUIT"]
    if os.geteuid() == 0:
        words += [f"--reuid={SUPERUSER}", f"--regid={SUPERUSER}", "--clear-groups"]
    return words


class PostgresServer:
    """One server, and the folder that it keeps its state in.

    The folder has the directory `data`, the socket, and the `log`. `with` makes the state, starts
    the server, and ends it. In between a test may stop, kill and start it as it likes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        host: str = LOOPBACK,
        settings: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`prefix` goes before the server's command, as `ip netns exec …` does."""
        self.folder = folder
        self.data = folder / "data"
        self.host = host
        self.port = free_port() if port is None else port
        self._settings = _QUICK | dict(settings or {})
        self._prefix = prefix
        self._environment = dict(environment or {})
        self._running: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        programs()
        self.create()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(immediate=True)

    def url(self, database: str = SUPERUSER, *, user: str = SUPERUSER) -> str:
        return f"postgresql://{user}@{self.host}:{self.port}/{database}"

    @property
    def connection(self) -> str:
        """Over the Unix socket, as a connection string of libpq's."""
        return f"host={self.folder} port={self.port} user={SUPERUSER} dbname={SUPERUSER}"

    @property
    def pid(self) -> int:
        """Of the postmaster."""
        assert self._running is not None, "the server does not run"
        return self._running.pid

    @property
    def pids(self) -> list[int]:
        """Of the postmaster and of all that it has started."""
        return [self.pid, *_children(self.pid)]

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    # Any: columns are of the types that the query gives them.
    def ask(self, query: str, *parameters: object, database: str = SUPERUSER) -> list[Any]:
        """Run one statement in a transaction of its own; its rows, or none."""
        with psycopg.connect(
            self.connection, dbname=database, autocommit=True, prepare_threshold=None
        ) as connection:
            done = connection.execute(query.encode(), parameters or None)
            return done.fetchall() if done.description is not None else []

    def create(self) -> None:
        self.run(
            "initdb",
            f"--pgdata={self.data}",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        )
        (self.data / "pg_hba.conf").write_text(_ACCESS)

    def start(self) -> None:
        """Return once it takes connections."""
        assert self._running is None, "the server runs already"
        self._write_settings()
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self._command("postgres", f"-D{self.data}"),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in a terminal is for whoever started this, who then stops the server.
                start_new_session=True,
            )
        self._wait_until_ready()

    def stop(self, *, immediate: bool = False) -> None:
        """Immediate: as a crash whose files are whole, without the last checkpoint."""
        self._end(signal.SIGQUIT if immediate else signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL the postmaster, and see its other processes off, as a host's death would."""
        self._end(signal.SIGKILL)

    def promote(self) -> None:
        """Make a standby the primary. Returns once it takes writes."""
        self.run("pg_ctl", "promote", f"--pgdata={self.data}", "--wait")

    def back_up(self, to: Path) -> None:
        """A copy of all that it has now, in a folder that is not there yet."""
        self.run(
            "pg_basebackup",
            f"--dbname={self.url()}",
            f"--pgdata={to}",
            "--checkpoint=fast",
            "--no-sync",
        )

    def restore(self, backup: Path) -> None:
        """Go back to what it was then, as an operator does who has lost the rest."""
        self.stop(immediate=True)
        shutil.rmtree(self.data)
        subprocess.run(["cp", "-a", str(backup), str(self.data)], check=True)
        self.start()

    def set(self, name: str, value: str) -> None:
        """Change a setting. Sessions learn of it a moment later, unless it needs a restart."""
        self._settings[name] = value
        self._write_settings()
        if self._running is not None:
            self._running.send_signal(signal.SIGHUP)

    def run(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs as its user; what it printed."""
        done = subprocess.run(
            self._command(program, *arguments),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}{done.stdout}"
        return done.stdout

    def _command(self, program: str, *arguments: str) -> list[str]:
        # Given by `env`, so that a library to preload is not for programs that start the server.
        given = [f"{name}={value}" for name, value in self._environment.items()]
        words = [*self._prefix, *as_postgres(), "env", *given, str(programs() / program)]
        return [*words, *arguments]

    def _write_settings(self) -> None:
        settings = self._settings | {
            "port": str(self.port),
            "listen_addresses": self.host,
            "unix_socket_directories": str(self.folder),
        }
        lines = (f"{name} = '{value}'\n" for name, value in settings.items())
        (self.data / "postgresql.conf").write_text("".join(lines))

    def _end(self, number: signal.Signals) -> None:
        if self._running is None:
            return
        family = _children(self._running.pid)
        self._running.send_signal(number)
        self._running.wait(PATIENCE)
        self._running = None
        if number is signal.SIGKILL:
            # Orphans notice by themselves, but a connection in a long statement would live on.
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _wait_until_ready(self) -> None:
        """Until its state file says so, as pg_ctl does."""
        deadline = time.monotonic() + PATIENCE
        pause = threading.Event()
        while True:
            assert self._running is not None
            ended = self._running.poll()
            if ended is not None:
                self._running = None
                raise AssertionError(f"PostgreSQL did not start:\n{self.log.read_text()}")
            with contextlib.suppress(FileNotFoundError):
                lines = (self.data / "postmaster.pid").read_text().splitlines()
                is_its_own = lines[:1] == [str(self._running.pid)]
                if is_its_own and lines[7:] and lines[7].strip() in {"ready", "standby"}:
                    return
            assert time.monotonic() < deadline, "PostgreSQL takes too long to start"
            pause.wait(_POLL)


def _children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]
