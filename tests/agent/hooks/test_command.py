"""Commands get the event and little else, and leave nothing running."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.agent.model import Phase, Verdict
from forewarned.targets.programs import run_program
from tests.agent.hooks.calls import EVENT, a_call, a_hook, a_sighting


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-c", code]


async def test_the_event_is_in_the_environment_and_on_stdin(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = (
        "import json, os, sys; from pathlib import Path;"
        f"Path({str(seen)!r}).write_text(json.dumps([dict(os.environ), json.load(sys.stdin)]))"
    )

    outcome = await a_hook("command", argv=python(code)).run(a_call())

    assert outcome.verdict is Verdict.DONE, outcome
    environment, event = json.loads(seen.read_text())
    assert environment["FOREWARNED_EVENT_ID"] == EVENT
    assert environment["FOREWARNED_TYPE"] == "Reboot"
    assert environment["FOREWARNED_PHASE"] == "prepare"
    assert environment["FOREWARNED_RESOURCES"] == "web_0,web_1"
    assert event["EventId"] == EVENT


async def test_nothing_of_the_agents_own_environment_is_passed_on_but_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S15."""
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy")
    # Measuring coverage of programs that tests start sets variables of its own.
    code = (
        "import os; print(' '.join(sorted(n for n in os.environ"
        " if not n.startswith(('FOREWARNED_', 'LC_', 'COV')))))"
    )

    outcome = await a_hook(
        "command", argv=python(code), environment={"ROLE": "web", "FOREWARNED_TYPE": "Freeze"}
    ).run(a_call())

    assert outcome.detail == "HOME LANG PATH ROLE"


async def test_the_file_can_not_say_what_the_event_is() -> None:
    hook = a_hook(
        "command",
        argv=python("import os; print(os.environ['FOREWARNED_TYPE'])"),
        environment={"FOREWARNED_TYPE": "Freeze"},
    )

    assert (await hook.run(a_call())).detail == "Reboot"


async def test_no_shell_reads_the_arguments(tmp_path: Path) -> None:
    """S15."""
    call = a_call(
        sighting=a_sighting(description=f"$(touch {tmp_path}/pwned); `touch {tmp_path}/x`")
    )

    outcome = await a_hook("command", argv=["echo", f"; touch {tmp_path}/pwned", "$HOME"]).run(call)

    assert outcome.detail == f"; touch {tmp_path}/pwned $HOME"
    assert not any(os.scandir(tmp_path))


async def test_a_failure_tells_the_last_line_of_complaint() -> None:
    code = "import sys; print('first', file=sys.stderr); sys.exit('the disk is full')"

    outcome = await a_hook("command", argv=python(code)).run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail == f"{sys.executable} ended with exit code 1: the disk is full"


async def test_the_declared_exit_code_is_a_veto_and_no_other() -> None:
    code = "import sys; print('a backup is running', file=sys.stderr); sys.exit(75)"
    argv = python(code)

    vetoed = await a_hook("command", argv=argv, veto_exit_code=75).run(a_call())
    failed = await a_hook("command", argv=argv, veto_exit_code=74).run(a_call())
    undeclared = await a_hook("command", argv=argv).run(a_call())

    assert (vetoed.verdict, vetoed.detail) == (Verdict.VETOED, "a backup is running")
    assert failed.verdict is Verdict.FAILED
    assert undeclared.verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["no-such-program"], "there is no executable program 'no-such-program'"),
        (["/etc/passwd"], "there is no executable program '/etc/passwd'"),
    ],
)
async def test_a_program_that_can_not_be_run_is_a_failure(argv: list[str], why: str) -> None:
    hook = a_hook("command", argv=argv)

    outcome = await hook.run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert why in outcome.detail
    assert why in (await hook.check())[0]


async def test_a_directory_that_is_not_there_is_a_failure() -> None:
    outcome = await a_hook("command", argv=["true"], directory="/nowhere").run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert "No such file or directory" in outcome.detail
    assert await a_hook("command", argv=["true"], directory="/nowhere").check() == [
        "there is no directory /nowhere"
    ]


async def test_a_path_is_looked_for_where_it_is_run(tmp_path: Path) -> None:
    program = a_script(tmp_path / "prepare", "pwd")
    here = a_hook("command", argv=["./prepare"], directory=str(tmp_path))
    elsewhere = a_hook("command", argv=["./prepare"])

    outcome = await here.run(a_call())

    assert outcome.detail == str(program.parent)
    assert await here.check() == []
    assert await elsewhere.check() == ["there is no executable program './prepare'"]


def a_script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


async def test_a_signal_is_named() -> None:
    outcome = await a_hook("command", argv=["sh", "-c", "kill -ABRT $$"]).run(a_call())

    assert outcome.detail == "sh was killed by SIGABRT"


async def test_undo_runs_its_own_program(tmp_path: Path) -> None:
    hook = a_hook("command", argv=["true"], undo_argv=["touch", str(tmp_path / "back")])

    outcome = await hook.undo(a_call(Phase.UNDO))

    assert outcome.verdict is Verdict.DONE
    assert (tmp_path / "back").exists()
    assert await hook.check() == []


STUBBORN = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-I", "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True);"
    "signal.pause()"], stdout=subprocess.PIPE)
child.stdout.readline()
with open(sys.argv[1], "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
signal.pause()
"""


class Watched:
    """Programs that write their pids into a pipe once they are ready."""

    def __init__(self, path: Path) -> None:
        self.pipe = path
        os.mkfifo(path)
        self.pids: list[int] = []
        self._descriptors: list[int] = []

    async def ready(self) -> None:
        async with asyncio.timeout(60):
            told = await asyncio.to_thread(self.pipe.read_text)
        self.pids = [int(word) for word in told.split()]
        self._descriptors = [os.pidfd_open(pid) for pid in self.pids]

    async def gone(self) -> None:
        """Returns once all have ended."""
        async with asyncio.timeout(10):
            for descriptor in self._descriptors:
                ended = asyncio.Event()
                asyncio.get_running_loop().add_reader(descriptor, ended.set)
                await ended.wait()
                asyncio.get_running_loop().remove_reader(descriptor)
                os.close(descriptor)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "pids")


async def test_what_is_cancelled_is_gone_with_all_it_started(watched: Watched) -> None:
    """S15: also where it does not listen to SIGTERM."""
    hook = a_hook("command", argv=[*python(STUBBORN), str(watched.pipe)])
    running = asyncio.ensure_future(hook.run(a_call()))
    await watched.ready()
    parent, child = watched.pids
    assert os.getpgid(child) == parent

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await watched.gone()


async def test_what_times_out_is_gone_with_all_it_started(watched: Watched) -> None:
    hook = a_hook("command", argv=[*python(STUBBORN), str(watched.pipe)])
    running = asyncio.ensure_future(hook.run(a_call(limit=timedelta(seconds=5))))
    await watched.ready()

    outcome = await running

    assert outcome.verdict is Verdict.TIMED_OUT
    assert outcome.detail == f"still waiting for {sys.executable} to end"
    await watched.gone()


async def test_a_cancelled_program_can_still_clean_up(tmp_path: Path, watched: Watched) -> None:
    cleaned = tmp_path / "cleaned"
    script = f"trap 'touch {cleaned}; exit 0' TERM; echo $$ > {watched.pipe}; sleep 60 & wait"
    running = asyncio.ensure_future(run_program(["sh", "-c", script]))
    await watched.ready()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await watched.gone()
    assert os.access(cleaned, os.F_OK)


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    """At any of its first steps."""
    for steps in range(6):
        marker = f"7.{os.getpid()}{steps}"
        running = asyncio.ensure_future(run_program(["sleep", marker]))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert not is_mentioned(marker)


def is_mentioned(marker: str) -> bool:
    """In the argv of any process there is."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if marker.encode() in path.read_bytes():
                return True
    return False


async def test_what_a_program_leaves_behind_on_purpose_does_not_hold_the_hook(
    tmp_path: Path,
) -> None:
    pid = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {pid}; echo done"

    outcome = await a_hook("command", argv=["sh", "-c", script]).run(a_call())

    assert (outcome.verdict, outcome.detail) == (Verdict.DONE, "done")
    os.kill(int(pid.read_text()), signal.SIGKILL)


async def test_a_flood_of_words_is_kept_within_bounds() -> None:
    ran = await run_program(["sh", "-c", "yes | head -c 5000000; echo the end"])

    assert ran.stdout.endswith("the end\n")
    assert len(ran.stdout) <= 16 * 1024


async def test_a_program_need_not_read_what_it_is_told() -> None:
    ran = await run_program(["true"], stdin=b"x" * 1_000_000)

    assert ran.exit_code == 0
