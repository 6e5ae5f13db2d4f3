"""Takes servers out of HAProxy through its runtime socket, and waits for their sessions to end.

Invariant: a server that an operator has drained or put into maintenance is left alone, now and
later.
"""

import asyncio
import csv
import sys
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta
from typing_extensions import override

from forewarned.agent.hooks.ports import Call
from forewarned.agent.hooks.table import UndoableTable
from forewarned.agent.model import Phase
from forewarned.targets.errors import TargetError

_MAINTENANCE: Final = 0x01
_DRAINED: Final = 0x08
"""Bits of `srv_admin_state`: what was set through the socket, not what health checks have found."""
_LOOK: Final = 0.25
"""Seconds between two counts of the sessions that are left."""
_ANSWER: Final = 5.0
"""Seconds that HAProxy may take to answer."""
_LARGEST: Final = 8 * 1024 * 1024
_TCP: Final = "tcp://"
_DENIED: Final = "Permission denied"

ServerName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]+/[A-Za-z0-9_.:-]+$")]


class HaproxyHook(UndoableTable, frozen=True, kw_only=True):
    """Drains HAProxy servers, waits for their sessions to end, and puts them back."""

    socket: str = "/run/haproxy/admin.sock"
    """HAProxy's runtime socket, configured with `level admin`: a path, or `tcp://HOST:PORT`."""
    servers: Annotated[tuple[ServerName, ...], Meta(min_length=1)]
    """The servers to drain, each as `backend/server`."""
    wait: bool = True
    """Whether to wait until the servers have no sessions left."""

    def __post_init__(self) -> None:
        if self.socket.startswith(_TCP):
            _host_and_port(self.socket)
        elif not self.socket.startswith("/"):
            raise ValueError(f"{self.socket!r} is neither an absolute path nor tcp://HOST:PORT")

    @property
    @override
    def targets(self) -> frozenset[str]:
        return frozenset(f"haproxy {self.socket} {server}" for server in self.servers)

    @override
    async def run(self, call: Call) -> str:
        servers = self.servers
        ours = set(call.notes.get("drained", "").split())
        for server in servers:
            state = await self._admin_state(server)
            if not state & (_DRAINED | _MAINTENANCE):
                ours.add(server)
                call.save_notes({"drained": " ".join(sorted(ours))})
                await self._set(server, "drain")
        while self.wait:
            sessions = await self._sessions()
            busy = {server: sessions[server] for server in servers if sessions.get(server)}
            if not busy:
                break
            left = ", ".join(f"{count} of {server}" for server, count in busy.items())
            call.waiting_for(f"sessions to end: {left}")
            await asyncio.sleep(_LOOK)
        theirs = [server for server in servers if server not in ours]
        if theirs:
            return f"{', '.join(theirs)} had been drained before, and will stay drained"
        return f"drained {', '.join(servers)}"

    @override
    async def put_back(self, call: Call) -> str:
        back = []
        for server in call.notes.get("drained", "").split():
            state = await self._admin_state(server)
            # Otherwise it is in maintenance or back by now, or HAProxy was restarted.
            if state & _DRAINED and not state & _MAINTENANCE:
                await self._set(server, "ready")
                back.append(server)
        return f"put back {', '.join(back)}" if back else "nothing to put back"

    @override
    async def check(self) -> list[str]:
        problems = []
        for server in self.servers:
            try:
                await self._admin_state(server)
            except TargetError as error:
                problems.append(str(error))
        # Without a state to set, it answers with its usage, or that the socket may not do this.
        if not problems and await self._ask(f"set server {self.servers[0]}") == _DENIED:
            problems.append(f"{self.socket} does not have level admin")
        return problems

    @override
    def describe(self, phase: Phase) -> str:
        servers = ", ".join(self.servers)
        if phase is Phase.UNDO:
            return f"put the drained servers back: {servers}"
        what, whose = ("server", "its") if len(self.servers) == 1 else ("servers", "their")
        waits = f" and wait for {whose} sessions to end" if self.wait else ""
        return f"drain HAProxy {what} {servers}{waits}"

    async def _set(self, server: str, state: str) -> None:
        answer = await self._ask(f"set server {server} state {state}")
        # Its answer is empty when it has done so.
        if answer:
            raise TargetError(f"HAProxy refuses to set {server} to {state}: {answer}")

    async def _admin_state(self, server: str) -> int:
        backend, _, name = server.partition("/")
        answer = await self._ask(f"show servers state {backend}")
        lines = answer.splitlines()
        if len(lines) < 2 or not lines[1].startswith("#"):
            raise TargetError(f"HAProxy has no backend {backend}: {answer}".removesuffix(": "))
        columns = lines[1].removeprefix("#").split()
        for line in lines[2:]:
            row = dict(zip(columns, line.split(), strict=False))
            if row.get("srv_name") == name:
                return int(row["srv_admin_state"])
        raise TargetError(f"HAProxy has no server {name} in backend {backend}")

    async def _sessions(self) -> Mapping[str, int]:
        # 4 is for servers: a proxy with thousands of listeners would make this long.
        answer = await self._ask("show stat -1 4 -1")
        rows = csv.DictReader(answer.removeprefix("# ").splitlines())
        try:
            return {f"{row['pxname']}/{row['svname']}": int(row["scur"]) for row in rows}
        except (KeyError, ValueError) as error:
            raise TargetError("HAProxy's statistics can't be read") from error

    async def _ask(self, command: str) -> str:
        where = self.socket
        try:
            async with asyncio.timeout(_ANSWER):
                return (await _exchange(where, command)).strip()
        except TimeoutError as error:
            raise TargetError(f"HAProxy at {where} does not answer") from error
        except OSError as error:
            raise TargetError(f"can't reach HAProxy at {where}: {error.strerror}") from error


async def _exchange(where: str, command: str) -> str:
    if where.startswith(_TCP):
        host, port = _host_and_port(where)
        reader, writer = await asyncio.open_connection(host, port)
    elif sys.platform == "win32":
        raise TargetError(f"this system has no Unix sockets such as {where}: give {_TCP}HOST:PORT")
    else:
        reader, writer = await asyncio.open_unix_connection(where)
    try:
        # One command for a connection: HAProxy closes it after its answer.
        writer.write(f"{command}\n".encode())
        answer = bytearray()
        while chunk := await reader.read(65536):
            answer += chunk
            if len(answer) > _LARGEST:
                raise TargetError(f"HAProxy at {where} sent more than {_LARGEST} bytes")
        return answer.decode(errors="replace")
    finally:
        writer.transport.abort()


def _host_and_port(where: str) -> tuple[str, int]:
    host, _, port = where.removeprefix(_TCP).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{where!r} is not of the form tcp://HOST:PORT")
    return host, int(port)
