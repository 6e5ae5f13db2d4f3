"""Handlers in their sandboxes, and the end of all that they have started."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.sandbox.namespace import NamespaceError, ProgramError
from forewarned.scenarios.isolation import sandbox as sandbox_module
from forewarned.scenarios.isolation.sandbox import (
    KeeperLostError,
    LeftRunningError,
    Program,
    Sandbox,
)
from tests.scenarios.sandboxes import needs_namespaces
from tests.scenarios.unprivileged import NOBODY, as_nobody

METADATA = "169.254.169.254"
LONG = 60


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds every process")
both = pytest.mark.parametrize(
    "isolated", [False, pytest.param(True, marks=needs_namespaces)], ids=["shared", "isolated"]
)


# For what a keeper does in the same way in both.
either = pytest.mark.parametrize(
    "isolated",
    [False, pytest.param(True, marks=[needs_namespaces, pytest.mark.thorough])],
    ids=["shared", "isolated"],
)


@asynccontextmanager
async def a_sandbox(isolated: bool) -> AsyncIterator[Sandbox]:
    async with asyncio.timeout(LONG):
        async with Sandbox(addresses=[METADATA], is_isolated=isolated, hostname="web_0") as sandbox:
            yield sandbox


async def printed(program: Program, until: bytes) -> bytes:
    """What it prints, until it has printed this."""
    read = b""
    while until not in read:
        piece = await asyncio.to_thread(os.read, program.output, 65536)
        assert piece, f"it ended after {read!r}"
        read += piece
    return read


async def rest(program: Program) -> bytes:
    """What it prints until no process has its output any more."""
    read = b""
    while piece := await asyncio.to_thread(os.read, program.output, 65536):
        read += piece
    os.close(program.output)
    os.close(program.errors)
    return read


STUBBORN = """
import signal, time
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, 32, 33, 34}:
    signal.signal(number, signal.SIG_IGN)
print('up', flush=True)
while True: time.sleep(3600)
"""
# Forks twice into a session of its own, as daemons do, and only then says that it is up.
DAEMON = """
import os, time
if os.fork(): os._exit(7)
os.setsid()
if os.fork(): os._exit(0)
print('up', flush=True)
while True: time.sleep(3600)
"""
FORKING = """
import os, time
for _ in range(20):
    if not os.fork():
        os.setsid()
        while True: time.sleep(3600)
print('up', flush=True)
while True: time.sleep(3600)
"""
# Always one process, and never the same for long: it forks, and the parent exits. Not without end,
# so that a sandbox that can't end it does not fill the process table of the machine.
BREEDING = """
import os
print('up', flush=True)
for _ in range(2000):
    if os.fork(): os._exit(0)
print('worn out', flush=True)
"""


@on_linux
@both
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(STUBBORN, marks=pytest.mark.thorough),
        DAEMON,
        pytest.param(FORKING, marks=pytest.mark.thorough),
        BREEDING,
        pytest.param(
            BREEDING.replace("os._exit(0)", "os._exit(0)\n    os.setsid()"),
            marks=pytest.mark.thorough,
        ),
    ],
    ids=["stubborn", "daemon", "forking", "breeding", "breeding sessions"],
)
async def test_nothing_that_a_handler_has_started_outlives_a_kill(
    isolated: bool, script: str
) -> None:
    async with a_sandbox(isolated) as sandbox:
        program = await sandbox.start([sys.executable, "-ISc", script], variables={})
        await printed(program, b"up\n")

        await sandbox.kill()

        # The pipe has no writer any more, so all processes that had it are gone.
        assert await rest(program) == b""


async def test_what_is_being_killed_is_not_killed_again_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A keeper that is busy with one request would get busier with more."""
    monkeypatch.setattr(sandbox_module, "_PAUSE", timedelta(milliseconds=1))
    monkeypatch.setattr(sandbox_module, "_PATIENCE", timedelta(milliseconds=50))
    sandbox = Sandbox(is_isolated=False)
    sandbox._channel, keeper = socket.socketpair()
    sandbox._all_ended.clear()

    with sandbox._channel, keeper:
        with pytest.raises(LeftRunningError):
            await sandbox.kill()
        assert keeper.recv(65536).count(b"\n") == 1

        sandbox._hear({"said": "killed"})
        with pytest.raises(LeftRunningError):
            await sandbox.kill()
        assert keeper.recv(65536).count(b"\n") == 1


@needs_namespaces
async def test_a_keeper_that_does_not_end_is_ended_with_all_of_its_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox_module, "_PATIENCE", timedelta(milliseconds=50))
    sandbox = await Sandbox(is_isolated=True).__aenter__()
    program = await sandbox.start([sys.executable, "-ISc", STUBBORN], variables={})
    await printed(program, b"up\n")
    # Stopped, it does not read that it is to end.
    os.killpg(sandbox._keeper.pid, signal.SIGSTOP)

    with pytest.raises(LeftRunningError):
        await sandbox.__aexit__()

    try:
        closed, _, _ = await asyncio.to_thread(select.select, [program.output], [], [], LONG)
        assert closed, "it still runs"
        assert await rest(program) == b""
        await sandbox._keeper.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(sandbox._keeper.pid, signal.SIGKILL)


def keepers_of(sandbox: Sandbox) -> list[int]:
    """The process that was started, and the one below it that starts the programs."""
    guard = sandbox._keeper.pid
    children = Path(f"/proc/{guard}/task/{guard}/children").read_text(encoding="ascii")
    return [guard, *map(int, children.split())]


async def end_lost(sandbox: Sandbox) -> None:
    async with asyncio.timeout(LONG):
        with pytest.raises(KeeperLostError, match="was killed, and the handler with it"):
            await sandbox.__aexit__()


@on_linux
@both
async def test_nothing_outlives_a_keeper_that_is_killed(isolated: bool) -> None:
    sandbox = await Sandbox(is_isolated=isolated).__aenter__()
    programs = []
    for script in (STUBBORN, DAEMON, FORKING):
        program = await sandbox.start([sys.executable, "-ISc", script], variables={})
        await printed(program, b"up\n")
        programs.append(program)

    os.kill(keepers_of(sandbox)[1], signal.SIGKILL)

    # By then, and not only when the block ends.
    assert await programs[0].exited == -signal.SIGKILL
    await sandbox.all_ended()
    assert [await rest(program) for program in programs] == [b"", b"", b""]
    await end_lost(sandbox)


@on_linux
async def test_a_program_ends_even_if_its_keeper_is_killed_with_what_guards_it() -> None:
    sandbox = await Sandbox(is_isolated=False).__aenter__()
    program = await sandbox.start([sys.executable, "-ISc", STUBBORN], variables={})
    await printed(program, b"up\n")

    os.killpg(sandbox._keeper.pid, signal.SIGKILL)

    assert await rest(program) == b""
    await end_lost(sandbox)


@either
async def test_a_sandbox_without_its_keeper_says_so(isolated: bool) -> None:
    sandbox = await Sandbox(is_isolated=isolated).__aenter__()

    os.killpg(sandbox._keeper.pid, signal.SIGKILL)

    # Before and after the sandbox has noticed.
    for _ in range(2):
        with pytest.raises(KeeperLostError):
            await sandbox.start(["true"], variables={})
        with pytest.raises(KeeperLostError):
            await sandbox.listen("127.0.0.1", 0)
    await end_lost(sandbox)


@on_linux
@both
async def test_nothing_outlives_its_sandbox(isolated: bool) -> None:
    async with a_sandbox(isolated) as sandbox:
        programs = [
            await sandbox.start([sys.executable, "-ISc", script], variables={})
            for script in (STUBBORN, DAEMON, FORKING)
        ]
        for program in programs:
            await printed(program, b"up\n")

    assert [await rest(program) for program in programs] == [b"", b"", b""]


@on_linux
@both
def test_nothing_outlives_an_examination_that_is_killed(isolated: bool, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = textwrap.dedent(
        f"""
        import asyncio, signal, os
        from forewarned.scenarios.isolation.sandbox import Sandbox

        async def main():
            async with Sandbox(is_isolated={isolated}) as sandbox:
                daemon = "(trap '' TERM HUP; exec 3>{fifo}; echo up >&3; sleep 3600) &"
                await sandbox.start(["sh", "-c", daemon], variables={{}})
                await asyncio.sleep(3600)

        asyncio.run(main())
        """
    )
    with (
        subprocess.Popen([sys.executable, "-c", script]) as examination,
        # Opening waits for the daemon to open its end.
        fifo.open("rb") as opened,
    ):
        assert opened.readline() == b"up\n"
        examination.kill()

        assert opened.read() == b""


@either
async def test_an_exit_code_is_told_and_a_signal_is_its_number_below_zero(isolated: bool) -> None:
    async with a_sandbox(isolated) as sandbox:
        exiting = await sandbox.start(["sh", "-c", "exit 3"], variables={})
        killed = await sandbox.start(["sh", "-c", "kill -9 $$"], variables={})

        assert await exiting.exited == 3
        assert await killed.exited == -signal.SIGKILL
        await sandbox.all_ended()

    assert await rest(exiting) == await rest(killed) == b""


@either
async def test_a_program_that_can_not_be_run_is_told_apart(isolated: bool) -> None:
    async with a_sandbox(isolated) as sandbox:
        with pytest.raises(ProgramError, match="no-such-program") as why:
            await sandbox.start(["no-such-program"], variables={})
        assert why.value.is_missing
        with pytest.raises(ProgramError) as why:
            await sandbox.start(["/"], variables={})
        assert not why.value.is_missing


@either
async def test_variables_are_added_and_removed(
    isolated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy")
    words = ["sh", "-c", "echo $ADDED ${HTTP_PROXY-none}"]

    async with a_sandbox(isolated) as sandbox:
        program = await sandbox.start(words, variables={"ADDED": "1", "HTTP_PROXY": None})

        assert await rest(program) == b"1 none\n"


@either
async def test_a_program_is_asked_to_end_and_may_say_good_bye(isolated: bool) -> None:
    words = ["sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 1 & wait; done"]

    async with a_sandbox(isolated) as sandbox:
        program = await sandbox.start(words, variables={})
        await printed(program, b"up\n")
        sandbox.send(signal.SIGTERM)

        assert await program.exited == 5
        await sandbox.all_ended()
        assert await rest(program) == b"bye\n"


async def serve_once(sandbox: Sandbox) -> str:
    """Answer one connection. Where it came from."""
    with await sandbox.listen(METADATA, 80) as listener:
        connection, (peer, _) = await asyncio.to_thread(listener.accept)
    with connection:
        connection.sendall(b"hello\n")
    return str(peer)


ASKING = f"import socket; print(socket.create_connection(('{METADATA}', 80)).makefile().read())"


@needs_namespaces
async def test_an_isolated_program_has_a_network_and_a_host_name_of_its_own() -> None:
    async with a_sandbox(isolated=True) as sandbox:
        for _ in range(2):
            # Once more, as after a restart of the service.
            served = asyncio.create_task(serve_once(sandbox))
            await asyncio.sleep(0)
            program = await sandbox.start([sys.executable, "-ISc", ASKING], variables={})
            assert await rest(program) == b"hello\n\n"
            assert await served == METADATA
        named = await sandbox.start(["uname", "-n"], variables={})

        assert await rest(named) == b"web_0\n"


@needs_namespaces
async def test_private_folders_are_empty_and_what_is_put_there_is_seen_nowhere_else(
    tmp_path: Path,
) -> None:
    look = ["sh", "-c", f"ls {tmp_path}; touch {tmp_path}/new; ls {tmp_path}"]

    for _ in range(2):
        async with Sandbox(is_isolated=True, private=[str(tmp_path)]) as sandbox:
            program = await sandbox.start(look, variables={})
            assert await rest(program) == b"new\n"


@needs_namespaces
async def test_what_the_system_refuses_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing"

    with pytest.raises(NamespaceError, match=f"mounting tmpfs at {missing}: No such file"):
        async with Sandbox(is_isolated=True, private=[str(missing)]):
            pass


@needs_namespaces
@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
async def test_a_user_who_is_not_root_has_isolated_sandboxes_too() -> None:
    script = textwrap.dedent(
        """
        import asyncio, os, sys
        from tests.scenarios.isolation.test_sandbox import *

        async def main():
            async with a_sandbox(isolated=True) as sandbox:
                served = asyncio.create_task(serve_once(sandbox))
                await asyncio.sleep(0)
                program = await sandbox.start([sys.executable, "-ISc", ASKING], variables={})
                print(await rest(program), await served)
                who = await sandbox.start(["id", "-u"], variables={})
                print(await rest(who))
                daemon = await sandbox.start([sys.executable, "-ISc", DAEMON], variables={})
                await printed(daemon, b"up\\n")
            print(await rest(daemon))

        asyncio.run(main())
        """
    )

    run = await asyncio.to_thread(
        subprocess.run,
        as_nobody(sys.executable, "-c", script),
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )

    assert (run.stderr, run.stdout) == ("", f"b'hello\\n\\n' {METADATA}\nb'{NOBODY}\\n'\nb''\n")
