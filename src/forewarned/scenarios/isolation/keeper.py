"""The process that starts a handler, opens listeners beside it, and ends all that it has started.

In a namespace it is the first process there: processes whose parents end become its children, a
signal to all reaches each of them, and when it ends, the kernel ends them all. Elsewhere it adopts
them, and looks for them (`process_tree`); if it is killed, its parent does so in its place.

It is told what to do over a socket, as lines of JSON. Invariant: when that socket closes, as when
the examination is killed, the handler and this process end, too.
"""

import ctypes
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from forewarned.sandbox import namespace
from forewarned.scenarios.isolation.process_tree import (
    AdoptedTree,
    NamespaceTree,
    ProcessTree,
    SessionTree,
    adopt_orphans,
)

# linux/sched.h and linux/mount.h
_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWUTS: Final = 0x04000000
_CLONE_NEWPID: Final = 0x20000000
_MS_NOSUID_NODEV_NOEXEC: Final = 2 | 4 | 8
_MS_NOSUID_NODEV: Final = 2 | 4
_MS_REC_PRIVATE: Final = 0x4000 | 0x40000
_PIECE: Final = 65536
_MOST_REAPED: Final = 256
"""In one go: a handler may fork as quickly as its dead are reaped, which would never end."""

Message = Mapping[str, Any]  # Any: what JSON is made of


class Keeper:
    def __init__(self, channel: socket.socket, tree: ProcessTree) -> None:
        self._channel = channel
        self._tree = tree
        self._received = b""
        self._started: set[int] = set()
        self._has_children = False

    def serve(self) -> None:
        """Until the channel closes."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with ours, theirs, selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            selector.register(ours, selectors.EVENT_READ)
            self._say({"said": "ready"})
            has_more = False
            while True:
                ready = {key.fileobj for key, _ in selector.select(0 if has_more else None)}
                if ours in ready:
                    ours.recv(_PIECE)
                # Before the dead are reaped, of which there may be more and more.
                if self._channel in ready:
                    piece = self._receive()
                    if not piece:
                        return
                    for message in self._messages(piece):
                        self._obey(message)
                has_more = self._reap()

    def end_all(self) -> None:
        """Returns when none is left."""
        # Some may be adopted that it has not started.
        self._has_children = True
        self._tree.kill(self._reap)
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return
            self._reap()
            # Those that were forked meanwhile have become children of this process by now.
            self._tree.kill(self._reap)

    def _receive(self) -> bytes:
        """Empty when the channel is closed."""
        try:
            return self._channel.recv(_PIECE)
        except ConnectionError:
            # The other end was killed before it had read all that it was told.
            return b""

    def _messages(self, piece: bytes) -> Iterator[Message]:
        *lines, self._received = (self._received + piece).split(b"\n")
        for line in lines:
            yield json.loads(line)

    def _obey(self, message: Message) -> None:
        match message["do"]:
            case "listen":
                self._listen(message["address"], message["port"])
            case "start":
                self._start(list(message["command"]), message["variables"])
            case "signal":
                if message["number"] == signal.SIGKILL:
                    self._tree.kill(self._reap)
                    self._say({"said": "killed"})
                else:
                    self._tree.send(message["number"])
            case other:
                raise ValueError(f"no such request: {other!r}")

    def _listen(self, address: str, port: int) -> None:
        try:
            listener = namespace.open_listener(address, port)
        except OSError as error:
            self._say({"said": "refused", "why": namespace.refused(error)})
            return
        with listener:
            self._say({"said": "listening"}, listener.fileno())

    def _start(self, command: list[str], variables: Mapping[str, str | None]) -> None:
        changed = {**os.environ, **variables}
        (output, out), (errors, err) = os.pipe(), os.pipe()
        try:
            pid = os.posix_spawnp(
                command[0],
                command,
                {name: value for name, value in changed.items() if value is not None},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, out, 1),
                    (os.POSIX_SPAWN_DUP2, err, 2),
                ],
                setsid=True,
                setsigdef=namespace.IGNORED_BY_PYTHON,
            )
        except OSError as error:
            self._say({"said": "not started", "number": error.errno})
        else:
            self._has_children = True
            self._started.add(pid)
            if isinstance(self._tree, SessionTree):
                self._tree.leaders.add(pid)
            self._say({"said": "started", "pid": pid}, output, errors)
        finally:
            for descriptor in (output, out, errors, err):
                os.close(descriptor)

    def _reap(self) -> bool:
        """Whether there may be more of the dead."""
        if not self._has_children:
            return False
        for _ in range(_MOST_REAPED):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._has_children = False
                self._say({"said": "all ended"})
                return False
            if pid == 0:
                return False
            if pid in self._started:
                self._started.discard(pid)
                code = os.waitstatus_to_exitcode(status)
                self._say({"said": "exited", "pid": pid, "code": code})
        return True

    def _say(self, message: Message, *descriptors: int) -> None:
        line = json.dumps(message).encode() + b"\n"
        try:
            socket.send_fds(self._channel, [line], descriptors)
        except OSError:
            # The other end is gone, which the next read says, too.
            return


def main() -> NoReturn:
    told = json.loads(sys.argv[1])
    channel = socket.socket(fileno=told["channel"])
    os.set_inheritable(told["channel"], False)
    if told["isolated"]:
        _isolate(channel, told)
        Keeper(channel, NamespaceTree()).serve()
    else:
        _guard(channel)
        keeper = Keeper(channel, _descendants())
        try:
            keeper.serve()
        finally:
            keeper.end_all()
    # The kernel ends whatever else is in the namespace before this process is gone.
    os._exit(0)


def _guard(channel: socket.socket) -> None:
    """Go on in a child. If that is killed, its parent ends what it leaves behind."""
    if sys.platform != "linux":
        return
    adopt_orphans()
    if child := os.fork():
        channel.close()
        os.waitpid(child, 0)
        Keeper(channel, AdoptedTree()).end_all()
        os._exit(0)


def _descendants() -> ProcessTree:
    if sys.platform != "linux":
        return SessionTree()
    adopt_orphans()
    return AdoptedTree()


def _isolate(channel: socket.socket, told: Message) -> None:
    """Raises SystemExit where the system refuses."""
    try:
        namespace.enter(told["addresses"], also=_CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWPID)
        _mount("none", "/", "", _MS_REC_PRIVATE)
        for path in told["private"]:
            _mount("tmpfs", path, "tmpfs", _MS_NOSUID_NODEV)
        socket.sethostname(told["hostname"])
    except OSError as error:
        message = {"said": "refused", "why": namespace.refused(error)}
        channel.sendall(json.dumps(message).encode() + b"\n")
        sys.exit(1)
    # Only children are in the PID namespace. The first of them is the one that adopts.
    if child := os.fork():
        channel.close()
        os.waitpid(child, 0)
        os._exit(0)
    try:
        _mount("proc", "/proc", "proc", _MS_NOSUID_NODEV_NOEXEC)
    except OSError:
        # Containers forbid it. Few programs look at more of it than at themselves, which works.
        return


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    """Raises OSError."""
    words = (source.encode(), target.encode(), kind.encode())
    if ctypes.CDLL(None, use_errno=True).mount(*words, flags, None) != 0:
        number = ctypes.get_errno()
        what = f"mounting {kind} at {target}" if kind else f"making mounts below {target} private"
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    main()
