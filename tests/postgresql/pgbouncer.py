"""PgBouncer in front of a server, in transaction mode: each transaction may get another session."""

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.packages import need
from tests.postgresql.servers import (
    LOOPBACK,
    PATIENCE,
    SUPERUSER,
    PostgresServer,
    as_postgres,
    free_port,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PgBouncer:
    folder: Path
    port: int
    sessions: int

    def url(self, database: str = SUPERUSER) -> str:
        return f"postgresql://{SUPERUSER}@{LOOPBACK}:{self.port}/{database}"

    @property
    def log(self) -> Path:
        return self.folder / "pgbouncer.log"

    @property
    def settings(self) -> Path:
        return self.folder / "pgbouncer.ini"

    def lead_to(self, server: PostgresServer) -> None:
        """From its next start on, or when it is told to read its settings."""
        self.settings.write_text(
            f"""
            [databases]
            * = host={server.host} port={server.port}
            [pgbouncer]
            listen_addr = {LOOPBACK}
            listen_port = {self.port}
            unix_socket_dir =
            auth_type = trust
            auth_file = {self.folder}/users.txt
            admin_users = {SUPERUSER}
            pool_mode = transaction
            default_pool_size = {self.sessions}
            max_client_conn = 500
            """.replace("            ", "")
        )

    def move(self, server: PostgresServer) -> None:
        """Lead to another server from now on. Clients stay connected."""
        self.lead_to(server)
        with psycopg.connect(self.url("pgbouncer"), autocommit=True) as console:
            # It knows the simple protocol only.
            console.pgconn.exec_(b"RELOAD")


@contextlib.contextmanager
def pgbouncer(server: PostgresServer, folder: Path, *, sessions: int = 4) -> Iterator[PgBouncer]:
    """With so many sessions to a database, whatever number of clients it has."""
    made = PgBouncer(folder=folder, port=free_port(), sessions=sessions)
    made.lead_to(server)
    (folder / "users.txt").write_text(f'"{SUPERUSER}" ""\n')
    program = need("pgbouncer")
    # It refuses to run as root, as PostgreSQL does.
    if os.geteuid() == 0:
        shutil.chown(made.settings, SUPERUSER, SUPERUSER)
    with (
        made.log.open("ab") as log,
        subprocess.Popen(
            [*as_postgres(), program, str(made.settings)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as running,
    ):
        try:
            _wait_until_it_listens(running, made)
            yield made
        finally:
            running.terminate()


def _wait_until_it_listens(running: "subprocess.Popen[bytes]", made: PgBouncer) -> None:
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, made.port)).close()
            return
        assert running.poll() is None, f"PgBouncer did not start:\n{made.log.read_text()}"
        assert time.monotonic() < deadline, "PgBouncer takes too long to start"
        pause.wait(0.02)
