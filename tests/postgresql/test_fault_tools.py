"""Each tool of the fault tests does what its name says."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from forewarned.clock import SystemClock
from tests.end_to_end.namespaces import inside, within
from tests.end_to_end.supervised_server import wait_until
from tests.postgresql.databases import Database
from tests.postgresql.fake_time import FakeTime
from tests.postgresql.partitions import NodeCable, partitions
from tests.postgresql.pauses import paused
from tests.postgresql.pgbouncer import pgbouncer
from tests.postgresql.servers import PostgresServer, private_folder


def test_pgbouncer_gives_a_session_to_a_transaction_not_to_a_client(
    postgres_server: PostgresServer,
) -> None:
    with (
        private_folder() as folder,
        pgbouncer(postgres_server, folder, sessions=1) as bouncer,
        psycopg.connect(bouncer.url(), prepare_threshold=None) as one,
        psycopg.connect(bouncer.url(), prepare_threshold=None) as other,
    ):
        pids = set()
        for client in (one, other):
            pids |= set(client.execute("SELECT pg_backend_pid()"))
            client.commit()

        with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter"):
            psycopg.connect(bouncer.url(), options="-c lock_timeout=1s")

    assert len(pids) == 1


def test_the_clock_of_a_running_server_can_be_moved() -> None:
    with private_folder() as folder:
        clock = FakeTime(folder)
        with PostgresServer(folder, environment=clock.environment) as server:
            real = _offset_of(server)
            clock.move(timedelta(seconds=262))
            ahead = _offset_of(server)
            clock.move(timedelta(seconds=-262))
            behind = _offset_of(server)

    assert abs(real) < timedelta(seconds=30)
    assert timedelta(seconds=232) < ahead < timedelta(seconds=292)
    assert timedelta(seconds=-292) < behind < timedelta(seconds=-232)


def _offset_of(server: PostgresServer) -> timedelta:
    [(told,)] = server.ask("SELECT clock_timestamp()")
    return told - SystemClock().now()  # type: ignore[no-any-return]  # what the driver returns


def test_the_monotonic_clock_is_left_alone(tmp_path: Path) -> None:
    clock = FakeTime(tmp_path)
    clock.move(timedelta(days=1))
    script = "import time; print(time.monotonic(), time.time())"

    told = subprocess.run(
        ["env", *(f"{k}={v}" for k, v in clock.environment.items()), sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
    )
    monotonic, wall = map(float, told.stdout.split())

    assert abs(monotonic - time.monotonic()) < 60
    assert wall - SystemClock().now().timestamp() > 86_000


def test_a_client_that_is_stopped_holds_its_locks(database: Database) -> None:
    script = (
        "import psycopg, sys\n"
        "connection = psycopg.connect(sys.argv[1])\n"
        "connection.execute('SELECT 1 FROM store FOR UPDATE')\n"
        "print('locked', flush=True)\n"
        "sys.stdin.readline()\n"
        "connection.close()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, database.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stdout.readline() == "locked\n"

        with paused(client.pid), database.connect() as other:
            client.stdin.write("\n")
            client.stdin.flush()
            with pytest.raises(errors.LockNotAvailable):
                other.execute("SELECT 1 FROM store FOR UPDATE NOWAIT")

        client.wait()
    with database.connect() as other:
        other.execute("SELECT 1 FROM store FOR UPDATE")


@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
@pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("CI") != "true",
    reason="NOT TESTED: nodes in network namespaces, which only root may make",
)
def test_one_node_can_be_cut_off_and_the_others_are_not() -> None:
    with (
        partitions(2) as made,
        private_folder() as folder,
        PostgresServer(folder, host="*", prefix=tuple(inside(made.server))) as server,
    ):

        def reaches(cable: NodeCable, *, seconds: int = 30) -> bool:
            url = f"postgresql://postgres@{cable.server}:{server.port}/postgres"

            def connect() -> None:
                psycopg.connect(url, connect_timeout=seconds).close()

            try:
                within(cable.namespace, connect)
            except psycopg.OperationalError:
                return False
            return True

        one, other = made.nodes
        before = reaches(one), reaches(other)
        one.cut()
        cut = reaches(one, seconds=2), reaches(other)
        one.mend()
        # The node may have given the server up for a moment: no route to it, says the kernel.
        wait_until(lambda: reaches(one))

    assert before == (True, True)
    assert cut == (False, True)
