"""`forewarned` in a process of its own, which need not import it first.

To import a server takes most of the time of its start, and tests start it hundreds of times. So a
process of each test worker has imported it, and is forked for each command: a real process, with
its own arguments, environment, directory and standard streams. What is tested about the start of an
interpreter, as `python -m forewarned` and the processes of a supervisor are, starts one.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Never, Self, TextIO

from forewarned.cli.app import COMMANDS, main

_LONGEST: Final = 1 << 20
"""Bytes of a request: arguments and environment."""
_IMPORTED_WHEN_WANTED: Final = (
    "forewarned.agent.assembly",
    "forewarned.runtime.launch",
    "forewarned.runtime.single_process",
    "forewarned.storage.postgres.nodes.node_store",
    # What those import when they are first asked for something.
    "anyio._backends._asyncio",
    "httpcore2",
    "jwt",
    "uvicorn.lifespan.off",
)


class Process:
    """As `subprocess.Popen`, as far as tests ask."""

    def __init__(self, stdout: TextIO, told: socket.socket) -> None:
        self.stdout = stdout
        self.returncode: int | None = None
        self._told = told
        self.pid = int(self._told.recv(32))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stdout.close()
        self.wait()

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises TimeoutExpired."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                self.returncode = int(self._told.recv(32))
            except (TimeoutError, BlockingIOError) as error:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0) from error
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Running = subprocess.Popen[str] | Process
"""One that was started with an interpreter, or forked."""


def start(
    *words: str,
    folder: Path,
    environment: dict[str, str],
    output: IO[str] | None = None,
    errors: IO[str],
    namespace: str | None = None,
    leads_a_group: bool = False,
    program: Path | None = None,
) -> Process:
    """`forewarned words…`, whose output and errors go to files; without one, output can be read.

    `namespace`: the network it is in, as `ip netns exec` has it.
    `program`: a Python file of a test's own, to be run instead of `forewarned`.
    """
    told, keeper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    own = None if program is None else str(program)
    asked = (words, str(folder.absolute()), environment, namespace, leads_a_group, own)
    request = json.dumps(asked).encode()
    assert len(request) < _LONGEST, "more than a request can hold"
    with contextlib.ExitStack() as stack:
        nothing = stack.enter_context(Path(os.devnull).open())
        stack.enter_context(keeper)
        stdout: TextIO = io.StringIO()
        if output is None:
            read_end, write_end = os.pipe()
            stdout = os.fdopen(read_end)
            output = stack.enter_context(os.fdopen(write_end, "w"))
        streams = [each.fileno() for each in (nothing, output, errors)]
        socket.send_fds(_original().requests, [request], [*streams, keeper.fileno()])
    return Process(stdout, told)


def run(
    *words: str, environment: dict[str, str], folder: Path = Path(), namespace: str | None = None
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run`: a command that comes to an end by itself."""
    with (
        tempfile.TemporaryFile("w+") as errors,
        start(
            *words, folder=folder, environment=environment, errors=errors, namespace=namespace
        ) as running,
    ):
        told = running.stdout.read()
        status = running.wait()
        errors.seek(0)
        return subprocess.CompletedProcess(words, status, told, errors.read())


class _Original:
    """The process that is forked. It ends when this one does, because its requests end then."""

    def __init__(self) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._running = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def close(self) -> None:
        self.requests.close()
        self._running.wait()


@functools.cache
def _original() -> _Original:
    """One for all of this process's tests."""
    original = _Original()
    atexit.register(original.close)
    return original


def _import_all() -> None:
    """What a server or a command imports when it is wanted."""
    for module in {*COMMANDS.values()}:
        importlib.import_module(f"forewarned.cli.{module}")
    for module in _IMPORTED_WHEN_WANTED:
        importlib.import_module(module)
    gc.freeze()


def _fork_when_asked(requests: socket.socket) -> bytes:
    """Return the request, in a process that was forked for it."""
    keepers = set[int]()
    while True:
        request, streams, _, _ = socket.recv_fds(requests, _LONGEST, 4)
        # They are waited for, so that the time they took is counted as the time of the tests.
        keepers = {pid for pid in keepers if os.waitpid(pid, os.WNOHANG) == (0, 0)}
        if not request:
            sys.exit()
        keeper = os.fork()
        if keeper == 0:
            break
        keepers.add(keeper)
        for descriptor in streams:
            os.close(descriptor)
    requests.close()
    *standard, told = streams
    if pid := os.fork():
        _keep(pid, standard, socket.socket(fileno=told))
    os.close(told)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return request


def enter(namespace: str) -> None:
    """Have this thread make its sockets there from now on."""
    with Path("/run/netns", namespace).open() as file:
        # os.setns is there from Python 3.12 on only.
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")


def _keep(pid: int, streams: list[int], told: socket.socket) -> Never:
    """Tell which process it is, and how it ended: only its parent hears of that."""
    for descriptor in streams:
        os.close(descriptor)
    told.send(str(pid).encode())
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        told.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run_at_start(path: str) -> list[Path]:
    """What an interpreter would run before anything else."""
    found = (Path(each, "sitecustomize.py") for each in path.split(os.pathsep) if each)
    return [each for each in found if each.is_file()]


def _main() -> None:
    _import_all()
    asked = _fork_when_asked(socket.socket(fileno=int(sys.argv[1])))
    words, folder, environment, namespace, leads_a_group, program = json.loads(asked)
    if leads_a_group:
        os.setsid()
    if namespace is not None:
        enter(namespace)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for start in _run_at_start(environment.get("PYTHONPATH", "")):
        runpy.run_path(str(start))
    sys.argv = [program or "forewarned", *words]
    if program is None:
        main()
    else:
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _main()
