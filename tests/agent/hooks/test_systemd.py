"""Units are stopped and started by systemctl's documented command line, and only ours come back.

Where systemd runs nothing here, a program named systemctl stands in for it: it keeps the state of
units as systemd does, and writes down how it was called.
"""

import asyncio
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from forewarned.agent.model import HookOutcome, Phase, Verdict
from tests.agent.hooks.calls import Told, a_call, a_hook, undone

_SHIM = """#!{python} -I
import json, sys
from pathlib import Path
state = Path({state!r})
calls = Path({calls!r})
with calls.open("a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
units = json.loads(state.read_text())
words = [word for word in sys.argv[1:] if not word.startswith("-")]
verb, unit = words
if verb == "show":
    found = units.get(unit)
    if "--property=LoadState" in sys.argv:
        print("not-found" if found is None else "loaded")
    else:
        print(found or "inactive")
    sys.exit(0)
if unit not in units:
    sys.exit(f"Failed to {{verb}} {{unit}}: Unit {{unit}} not loaded.")
if units[unit] == "broken":
    sys.exit(f"Job for {{unit}} failed because the control process exited with error code.")
units[unit] = {{"stop": "inactive"}}.get(verb, "active")
state.write_text(json.dumps(units))
"""


@dataclass(frozen=True, slots=True)
class Systemd:
    state: Path
    log: Path

    def calls(self, *verbs: str) -> list[list[str]]:
        told = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [words for words in told if words[1] in verbs]

    def units(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.state.read_text())
        return found

    def set(self, **units: str) -> None:
        self.state.write_text(json.dumps(units))


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    stand_in = Systemd(tmp_path / "units", tmp_path / "calls")
    stand_in.set(app="active", worker="inactive", timer="activating")
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(
        _SHIM.format(python=sys.executable, state=str(stand_in.state), calls=str(stand_in.log))
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return stand_in


ALL = ["app", "worker", "timer"]


async def test_only_what_ran_is_stopped_and_started_again(systemd: Systemd) -> None:
    """I30."""
    hook = a_hook("systemd", units=ALL)

    outcome = await hook.run(a_call())
    stopped = systemd.units()
    back = await undone(hook, outcome)

    assert outcome.verdict is Verdict.DONE, outcome
    assert set(stopped.values()) == {"inactive"}
    assert back.verdict is Verdict.DONE
    assert systemd.units() == {"app": "active", "worker": "inactive", "timer": "active"}
    assert systemd.calls("stop", "start") == [
        ["--no-ask-password", "stop", "--", "app"],
        ["--no-ask-password", "stop", "--", "timer"],
        ["--no-ask-password", "start", "--", "timer"],
        ["--no-ask-password", "start", "--", "app"],
    ]


async def test_what_ran_is_kept_before_anything_is_stopped(systemd: Systemd) -> None:
    """I30: also where the second unit fails, and the agent dies with it."""
    systemd.set(app="active", worker="broken", timer="active")
    told = Told()

    outcome = await a_hook("systemd", units=["app", "timer"]).run(a_call(told=told))

    assert outcome.notes == told.notes == {"changed": "app timer"}


async def test_a_retry_still_knows_what_ran_before(systemd: Systemd) -> None:
    """I30: the first attempt has stopped it already."""
    systemd.set(app="inactive", worker="inactive", timer="active")
    hook = a_hook("systemd", units=ALL)

    outcome = await hook.run(a_call(notes={"changed": "app timer"}))
    await undone(hook, HookOutcome(verdict=outcome.verdict, notes={"changed": "app timer"}))

    assert systemd.units() == {"app": "active", "worker": "inactive", "timer": "active"}


async def test_start_is_undone_by_stop(systemd: Systemd) -> None:
    hook = a_hook("systemd", units=["app", "worker"], action="start")

    outcome = await hook.run(a_call(Phase.RECOVER))
    await undone(hook, outcome)

    assert systemd.calls("start", "stop") == [
        ["--no-ask-password", "start", "--", "worker"],
        ["--no-ask-password", "stop", "--", "worker"],
    ]


async def test_a_unit_that_does_not_stop_is_a_failure_in_systemds_words(systemd: Systemd) -> None:
    systemd.set(app="broken")

    outcome = await a_hook("systemd", units=["app"], action="restart").run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert "Job for app failed" in outcome.detail


async def test_an_undo_with_no_notes_starts_nothing(systemd: Systemd) -> None:
    outcome = await undone(a_hook("systemd", units=ALL), HookOutcome(verdict=Verdict.INTERRUPTED))

    assert (outcome.verdict, outcome.detail) == (Verdict.DONE, "nothing to start")
    assert not systemd.log.exists()


async def test_check_names_units_that_systemd_does_not_know(systemd: Systemd) -> None:
    hook = a_hook("systemd", units=["app", "nothing.service"])

    assert await hook.check() == ["systemd has no unit nothing.service"]


async def test_check_says_that_systemctl_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    assert await a_hook("systemd", units=["app"]).check() == [
        "there is no executable program 'systemctl'"
    ]


@pytest.mark.skipif(
    not Path("/run/systemd/system").exists(), reason="systemd does not run here: PID 1 is not it"
)
def test_the_real_systemctl_understands_what_is_asked() -> None:
    unit = "forewarned-hook-test.service"
    subprocess.run(
        ["systemd-run", "--quiet", f"--unit={unit}", "--property=Type=exec", "sleep", "300"],
        check=True,
    )
    hook = a_hook("systemd", units=[unit], undo=False)

    outcome = asyncio.run(hook.run(a_call()))

    assert outcome.verdict is Verdict.DONE
    assert outcome.notes == {"changed": unit}


@pytest.mark.skipif(
    Path("/run/systemd/system").exists() or shutil.which("systemctl") is None,
    reason="systemd runs here, or there is no systemctl at all",
)
async def test_without_systemd_the_real_systemctl_says_why_it_fails() -> None:
    hook = a_hook("systemd", units=["app"])

    outcome = await hook.run(a_call())

    assert outcome.verdict is Verdict.FAILED
    assert outcome.detail.startswith("systemctl show --property=ActiveState --value -- app ended")
    assert len(await hook.check()) == 1
