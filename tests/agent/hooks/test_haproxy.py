"""A real HAProxy, with live sessions: drained, waited for, and put back (I30)."""

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.agent.model import HookOutcome, Phase, Verdict
from tests.agent.hooks.calls import Told, a_call, a_hook, undone
from tests.packages import need

_CONFIGURATION = """
global
    stats socket fd@{admin} level admin
    stats socket fd@{tcp} level admin
    stats socket fd@{operator} level operator
    hard-stop-after 1s
defaults
    mode tcp
    timeout connect 5s
    timeout client 5m
    timeout server 5m
frontend door
    bind fd@{door}
    default_backend web
backend web
    balance roundrobin
    server one 127.0.0.1:{one}
    server two 127.0.0.1:{two}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    admin: str
    """The path of a runtime socket."""
    tcp: str
    """The same over TCP."""
    operator: str
    """One on which nothing may be changed."""
    door: str

    def ask(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(self.admin)
            asking.sendall(f"{command}\n".encode())
            return b"".join(iter(lambda: asking.recv(65536), b"")).decode()

    def status(self, server: str) -> str:
        for line in self.ask("show stat -1 4 -1").splitlines():
            columns = line.split(",")
            if columns[1] == server:
                return columns[17]
        raise AssertionError(server)


class Visitor:
    """A session through the proxy, which stays as long as it is wanted."""

    def __init__(self, proxy: Proxy) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(proxy.door)
        self.server = self._socket.recv(16).decode()

    def echoes(self) -> bool:
        self._socket.sendall(b"x")
        return self._socket.recv(1) == b"x"

    def leave(self) -> None:
        self._socket.close()


@asynccontextmanager
async def _backend(name: str) -> AsyncIterator[int]:
    """A server that says its name and then echoes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(name.encode())
        while chunk := await reader.read(1024):
            writer.write(chunk)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
async def backends() -> AsyncIterator[tuple[int, int]]:
    async with _backend("one") as one, _backend("two") as two:
        yield one, two


def _listening(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(64)
    return listening


@pytest.fixture
def proxy(tmp_path: Path, backends: tuple[int, int]) -> Iterator[Proxy]:
    program = need("haproxy")
    # HAProxy is given sockets that listen already: whoever connects has only to wait for it.
    names = ("admin", "operator", "door")
    sockets = {name: _listening(tmp_path / name) for name in names}
    sockets["tcp"] = socket.create_server(("127.0.0.1", 0))
    port = sockets["tcp"].getsockname()[1]
    descriptors = {name: opened.fileno() for name, opened in sockets.items()}
    configuration = tmp_path / "haproxy.cfg"
    configuration.write_text(_CONFIGURATION.format(**descriptors, one=backends[0], two=backends[1]))
    log = tmp_path / "log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            [program, "-db", "-f", str(configuration)],
            stdout=output,
            stderr=output,
            pass_fds=tuple(descriptors.values()),
        )
    for opened in sockets.values():
        opened.close()
    made = Proxy(
        admin=str(tmp_path / "admin"),
        tcp=f"tcp://127.0.0.1:{port}",
        operator=str(tmp_path / "operator"),
        door=str(tmp_path / "door"),
    )
    try:
        yield made
    finally:
        running.kill()
        running.wait()


async def visitors(proxy: Proxy, count: int = 4) -> list[Visitor]:
    return [await asyncio.to_thread(Visitor, proxy) for _ in range(count)]


async def test_a_server_is_drained_waited_for_and_put_back(proxy: Proxy) -> None:
    hook = a_hook("haproxy", socket=proxy.admin, servers=["web/one"])
    there = await visitors(proxy)
    staying = [visitor for visitor in there if visitor.server == "one"]
    assert len(staying) == 2

    waits_for: asyncio.Queue[str] = asyncio.Queue()
    running = asyncio.ensure_future(hook.run(replace(a_call(), waiting_for=waits_for.put_nowait)))
    async with asyncio.timeout(20):
        waiting = await waits_for.get()

    # While it waits, its sessions live on, and whoever comes goes elsewhere.
    assert proxy.status("one") == "DRAIN"
    assert [await asyncio.to_thread(visitor.echoes) for visitor in staying] == [True, True]
    late = await visitors(proxy)
    assert {visitor.server for visitor in late} == {"two"}
    assert waiting == "sessions to end: 2 of web/one"
    assert not running.done()

    for visitor in staying:
        visitor.leave()
    outcome = await running
    assert (outcome.verdict, outcome.detail) == (Verdict.DONE, "drained web/one")

    back = await undone(hook, outcome)
    again = await visitors(proxy)
    assert (back.verdict, back.detail) == (Verdict.DONE, "put back web/one")
    assert proxy.status("one") == "no check"
    assert {visitor.server for visitor in again} == {"one", "two"}
    for visitor in (*there, *late, *again):
        visitor.leave()


async def test_sessions_that_do_not_end_are_named_when_the_time_is_up(proxy: Proxy) -> None:
    there = await visitors(proxy, 1)
    server = there[0].server
    told = Told()
    hook = a_hook("haproxy", socket=proxy.admin, servers=[f"web/{server}"])

    outcome = await hook.run(a_call(limit=timedelta(seconds=2), told=told))

    assert outcome.verdict is Verdict.TIMED_OUT
    assert outcome.detail == f"still waiting for sessions to end: 1 of web/{server}"
    assert told.notes == {"drained": f"web/{server}"}
    # By what was kept before anything was changed, as after a crash.
    back = await hook.undo(a_call(Phase.UNDO, notes=told.notes))
    assert back.detail == f"put back web/{server}"
    assert proxy.status(server) == "no check"
    there[0].leave()


@pytest.mark.parametrize(("state", "status"), [("drain", "DRAIN"), ("maint", "MAINT")])
async def test_a_server_that_was_out_before_stays_out(
    proxy: Proxy, state: str, status: str
) -> None:
    """I30."""
    proxy.ask(f"set server web/one state {state}")
    hook = a_hook("haproxy", socket=proxy.admin, servers=["web/one", "web/two"])

    outcome = await hook.run(a_call())
    during = proxy.status("one"), proxy.status("two")
    await undone(hook, outcome)

    assert outcome.verdict is Verdict.DONE
    assert outcome.notes == {"drained": "web/two"}
    assert during == (status, "DRAIN")
    assert proxy.status("one") == status
    assert proxy.status("two") == "no check"


async def test_a_server_that_was_put_into_maintenance_since_stays_there(proxy: Proxy) -> None:
    """I30."""
    hook = a_hook("haproxy", socket=proxy.admin, servers=["web/one"])

    outcome = await hook.run(a_call())
    proxy.ask("set server web/one state maint")
    back = await undone(hook, outcome)

    assert back.detail == "nothing to put back"
    assert proxy.status("one") == "MAINT"


async def test_a_retry_knows_that_the_drain_was_ours(proxy: Proxy) -> None:
    proxy.ask("set server web/one state drain")
    hook = a_hook("haproxy", socket=proxy.admin, servers=["web/one"])

    outcome = await hook.run(a_call(notes={"drained": "web/one"}))

    assert outcome.detail == "drained web/one"


async def test_an_undo_with_no_notes_puts_nothing_back(proxy: Proxy) -> None:
    proxy.ask("set server web/one state drain")
    hook = a_hook("haproxy", socket=proxy.admin, servers=["web/one"])

    await undone(hook, HookOutcome(verdict=Verdict.INTERRUPTED))

    assert proxy.status("one") == "DRAIN"


async def test_it_need_not_wait_for_sessions(proxy: Proxy) -> None:
    there = await visitors(proxy, 2)
    hook = a_hook("haproxy", socket=proxy.tcp, servers=["web/one", "web/two"], wait=False)

    outcome = await hook.run(a_call())

    assert outcome.verdict is Verdict.DONE
    assert proxy.status("one") == proxy.status("two") == "DRAIN"
    for visitor in there:
        visitor.leave()


async def test_check_finds_what_would_go_wrong(proxy: Proxy, tmp_path: Path) -> None:
    good = a_hook("haproxy", socket=proxy.tcp, servers=["web/one"])
    unknown = a_hook("haproxy", socket=proxy.admin, servers=["web/three", "none/one"])
    powerless = a_hook("haproxy", socket=proxy.operator, servers=["web/one"])
    absent = a_hook("haproxy", socket=str(tmp_path / "none"), servers=["web/one"])

    assert await good.check() == []
    no_server, no_backend = await unknown.check()
    assert no_server == "HAProxy has no server three in backend web"
    assert no_backend.startswith("HAProxy has no backend none")
    assert await powerless.check() == [f"{proxy.operator} does not have level admin"]
    assert (await absent.check())[0].startswith(f"can't reach HAProxy at {tmp_path / 'none'}")


async def test_what_may_not_be_changed_is_a_failure(proxy: Proxy) -> None:
    outcome = await a_hook("haproxy", socket=proxy.operator, servers=["web/one"]).run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == "HAProxy refuses to set web/one to drain: Permission denied"


async def test_one_that_never_answers_is_left_when_the_time_is_up(tmp_path: Path) -> None:
    with closing(_listening(tmp_path / "dumb")) as listening:
        hook = a_hook("haproxy", socket=str(tmp_path / "dumb"), servers=["web/one"])

        outcome = await hook.run(a_call(limit=timedelta(seconds=1)))

        assert outcome.verdict is Verdict.TIMED_OUT
        accepted, _ = await asyncio.to_thread(listening.accept)
        with accepted:
            accepted.settimeout(10)
            asked = await asyncio.to_thread(lambda: list(iter(lambda: accepted.recv(100), b"")))
        assert asked == [b"show servers state web\n"]
