"""A program in a network namespace of its own, whose only network is the listeners it is given.

A helper process makes the namespace, opens the listeners in it, hands them to its parent outside
and then becomes the program. So the parent serves what the program reaches, at addresses that are
in use on the machine itself, such as 169.254.169.254:80.

Root needs only the right to create namespaces. Other users get a user namespace as well,
in which they keep their ids. Only Linux has any of this.
"""

import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

Listen = tuple[str, int]
"""An address and a port."""
# What is ignored stays so in a program that Python becomes or starts.
IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)

_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_PR_SET_PDEATHSIG: Final = 1
# linux/sockios.h and linux/if.h
_SIOCSIFFLAGS: Final = 0x8914
_SIOCSIFADDR: Final = 0x8916
_SIOCSIFNETMASK: Final = 0x891C
_IFF_UP: Final = 1
_READY: Final = b"ready"
_GO: Final = b"go"
_LONGEST: Final = 4096


class NamespaceError(Exception):
    """This system does not let us make the namespace. The message says what it refused."""


class ProgramError(Exception):
    """The program can't be started."""

    def __init__(self, program: str, number: int) -> None:
        super().__init__(f"can't run {program!r} ({os.strerror(number)})")
        self.is_missing = number == errno.ENOENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawned:
    """A program about to start: it waits for `go` while its parent sets up what it will reach."""

    process: "subprocess.Popen[bytes]"
    program: str
    listeners: Mapping[Listen, socket.socket]
    """Open in the namespace, for the parent to serve and to close."""
    channel: socket.socket

    def go(self) -> None:
        """Raises ProgramError."""
        with self.channel:
            self.channel.sendall(_GO)
            # It closes, and says nothing, when the helper becomes the program.
            failure = self.channel.recv(_LONGEST)
        if failure:
            self.process.wait()
            raise ProgramError(self.program, int(failure))


def spawn(
    command: Sequence[str], *, variables: Mapping[str, str], listen: Sequence[Listen] | None
) -> Spawned:
    """A program with the listeners as its only network; without `listen`, in no namespace.

    It has our environment and these variables, and is ended when the thread that has called this
    ends. Raises NamespaceError.
    """
    with ExitStack() as stack:
        ours, theirs = socket.socketpair()
        stack.enter_context(theirs)
        stack.enter_context(ours)
        brief = json.dumps(
            {"channel": theirs.fileno(), "listen": listen, "variables": dict(variables)}
        )
        process = subprocess.Popen(
            # The folder it is started in is no place to look for modules.
            [sys.executable, "-P", "-m", __name__, brief, *command],
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        said, descriptors, _, _ = socket.recv_fds(ours, _LONGEST, len(listen or ()))
        if said != _READY:
            process.wait()
            raise NamespaceError(said.decode() or "the helper process ended")
        opened = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        stack.pop_all()
        return Spawned(
            process=process,
            program=command[0],
            listeners=dict(zip(listen or (), opened, strict=True)),
            channel=ours,
        )


# --- the helper process --------------------------------------------------------------------------


def main() -> NoReturn:
    told = json.loads(sys.argv[1])
    # Closed, and so told to the parent, when this process becomes the program.
    channel = socket.socket(fileno=told["channel"])
    os.set_inheritable(told["channel"], False)
    with ExitStack() as listeners:
        opened: list[socket.socket] = []
        if told["listen"] is not None:
            try:
                enter([address for address, _ in told["listen"]])
                for address, port in told["listen"]:
                    opened.append(listeners.enter_context(open_listener(address, port)))
            except OSError as error:
                channel.sendall(refused(error).encode())
                sys.exit(1)
        _end_with_parent()
        socket.send_fds(channel, [_READY], [each.fileno() for each in opened])
    if channel.recv(_LONGEST) != _GO:
        sys.exit(1)
    for name, value in told["variables"].items():
        os.putenv(name, value)
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    # The parent waits for signals, so it has them blocked, and so has its child.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  # which program is what we are asked for
    except OSError as error:
        channel.sendall(str(error.errno).encode())
        sys.exit(1)


def enter(addresses: Sequence[str], *, also: int = 0) -> None:
    """A network namespace with these addresses, and other namespaces, as flags of `unshare`.

    Raises OSError, whose `filename` says what was refused.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0 or not _unshare(_CLONE_NEWNET | also):
        if not _unshare(_CLONE_NEWUSER | _CLONE_NEWNET | also):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "making a network namespace")
        # Without this, mapping groups is not allowed.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    try:
        _bring_up_loopback(dict.fromkeys(a for a in addresses if not is_loopback(a)))
    except OSError as error:
        raise OSError(error.errno, error.strerror, "setting up a network namespace") from error


def _unshare(flags: int) -> bool:
    # os.unshare is there from Python 3.12 on only.
    return bool(ctypes.CDLL(None, use_errno=True).unshare(flags) == 0)


def _bring_up_loopback(addresses: Mapping[str, None]) -> None:
    """With these addresses beside its own, each for one host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP))
        for number, address in enumerate(addresses):
            alias = f"lo:{number}".encode()
            fcntl.ioctl(any_socket, _SIOCSIFADDR, _request(alias, address))
            fcntl.ioctl(any_socket, _SIOCSIFNETMASK, _request(alias, "255.255.255.255"))


def _request(interface: bytes, address: str) -> bytes:
    """A `struct ifreq` with a `struct sockaddr_in`."""
    return struct.pack("16sHH4s16x", interface, socket.AF_INET, 0, socket.inet_aton(address))


def refused(error: OSError) -> str:
    """What the system refused, and why."""
    return f"{error.filename or 'unshare'}: {error.strerror}"


def open_listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"listening at {address}:{port}") from error


def is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _end_with_parent() -> None:
    """A program whose service is gone is of no use, and would be left behind unnoticed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    main()
