"""The agent's commands: its file checked, an event rehearsed, and what a running agent is asked."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from typing_extensions import override

from notbefore.agent.journal import AnyFact, Finished, Journal, Planned
from notbefore.agent.locking import sole_agent
from notbefore.agent.settings import load
from notbefore.agent.status_wire import AgentStatus, EventStatus, Stage, StepStatus
from tests.agent.journeys import a_plan, a_sighting
from tests.builders import MINUTE, NOON
from tests.cli.served import invoke

EVENT = "0000000A-0000-4000-8000-000000000000"
OTHER = "0000000B-0000-4000-8000-000000000000"
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agent.toml"


def written(file: Path, *hooks: str, rules: str = "", endpoint: str = NOWHERE) -> Path:
    file.write_text(
        f'[agent]\nendpoint = "{endpoint}"\nresource = "web"\nstate = "state"\nlisten = "off"\n'
        + "".join(hooks)
        + (rules or '[[rules]]\nname = "any"\nprepare = ["drain"]\n')
    )
    return file


def a_command(*argv: str, name: str = "drain", more: str = "") -> str:
    return f'[hooks.{name}]\nkind = "command"\nargv = {json.dumps(argv)}\n{more}\n'


# --- check ---------------------------------------------------------------------------------------


def test_a_file_is_checked_without_touching_what_it_names(file: Path) -> None:
    result = invoke("agent", "check", "--offline", str(written(file, a_command("no-such-program"))))

    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith("1 rule, 1 hook; the file is in order\n")
    assert list(file.parent.iterdir()) == [file]


def test_all_mistakes_of_a_file_are_listed(file: Path) -> None:
    file.write_text('[agent]\npol = "1s"\n[[rules]]\nname = "any"\nprepare = ["drain"]\n')

    result = invoke("agent", "check", str(file))
    as_json = invoke("agent", "check", str(file), "--json")

    assert result.exit_code == as_json.exit_code == 1
    assert result.stderr.splitlines() == [
        f"error: 2 mistakes in {file}; nothing has changed",
        f"{file}:2: agent.pol: there is no such field; did you mean poll?",
        f"{file}:5: rules[0].prepare[0]: there is no [hooks.drain]",
    ]
    fault = json.loads(as_json.stderr)["error"]
    assert fault["code"] == "bad_agent_file"
    assert fault["message"].splitlines() == result.stderr.splitlines()[1:]


def test_what_a_file_names_is_looked_at_and_not_changed(file: Path) -> None:
    hooks = [a_command("true"), a_command("no-such-program", name="stop")]

    result = invoke("agent", "check", str(written(file, *hooks)))
    as_json = invoke("agent", "check", str(file), "--json")

    assert result.exit_code == as_json.exit_code == 1
    assert "error: 2 problems with what the file names" in result.stderr
    found = {target["name"]: target for target in json.loads(as_json.stdout)["targets"]}
    assert set(found) == {"agent.endpoint", "agent.state", "hooks.drain", "hooks.stop"}
    assert "can't be reached" in found["agent.endpoint"]["problems"][0]
    assert found["hooks.drain"] == {"name": "hooks.drain", "kind": "command", "problems": []}
    assert "no-such-program" in found["hooks.stop"]["problems"][0]
    assert list(file.parent.iterdir()) == [file]


def test_directories_that_are_none_are_found(file: Path) -> None:
    (file.parent / "state").write_text("")
    text = written(file, a_command("true")).read_text()
    gone = file.parent / "gone"
    shared = f'readiness = {{ kind = "directory", path = "{gone}" }}\n'
    file.write_text(text.replace("[agent]\n", f"[agent]\n{shared}"))

    result = invoke("agent", "check", str(file), "--json")

    found = {target["name"]: target["problems"] for target in json.loads(result.stdout)["targets"]}
    assert found["agent.state"] == [f"{file.parent / 'state'} is not a directory"]
    assert found["agent.readiness"] == [f"{gone} is not a directory"]


def test_leases_that_can_not_be_read_are_found(file: Path) -> None:
    text = written(file, a_command("true")).read_text()
    shared = f'readiness = {{ kind = "kubernetes", server = "{NOWHERE}", credentials = "." }}\n'
    file.write_text(text.replace("[agent]\n", f"[agent]\n{shared}"))

    result = invoke("agent", "check", str(file), "--json")

    found = {target["name"]: target["problems"] for target in json.loads(result.stdout)["targets"]}
    assert len(found["agent.readiness"]) == 1
    assert "credentials" in found["agent.readiness"][0]


# --- run -----------------------------------------------------------------------------------------


def test_an_agent_with_a_wrong_file_does_not_start(file: Path) -> None:
    file.write_text("")

    result = invoke("agent", "run", "--config", str(file))

    assert result.exit_code == 2
    assert "there are no rules" in result.stderr


def test_an_agent_without_a_file_says_where_it_looked() -> None:
    result = invoke("agent", "run", NOTBEFORE_AGENT_CONFIG="/nowhere/agent.toml")

    assert result.exit_code == 2
    assert "/nowhere/agent.toml: No such file" in result.stderr


def test_the_agent_needs_no_package_that_serves() -> None:
    modules = "running", "rehearsal", "hooks", "readiness_kubernetes"
    served = "cryptography jwt prometheus_client psycopg starlette uvicorn uvloop httptools"
    code = (
        f"import sys; sys.modules |= dict.fromkeys({served.split()});"
        f"import notbefore.logs, notbefore.cli.agent, {', '.join(f'notbefore.agent.{m}' for m in modules)};"
        "from notbefore.cli import agent_checking, agent_pages, agent_rehearsing"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


# --- rehearse ------------------------------------------------------------------------------------


def test_a_rehearsal_describes_each_step_and_tells_which_types_it_would_miss(file: Path) -> None:
    mark = file.parent / "ran"
    slow = a_command("touch", str(mark), more='undo_argv = ["true"]\ntimeout = "40s"')

    result = invoke("agent", "rehearse", "reboot", "--config", str(written(file, slow)))

    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["prepare", "drain", "not", "run", "40.0s", "run", "touch"] in [
        line[:7] for line in lines
    ]
    assert ["Reboot", "15m", "40.0s", "any", "yes"] in lines
    assert ["Preempt", "30s", "40.0s", "any", "no"] in lines
    assert result.stdout.endswith("Would miss: Preempt.\n")
    assert not mark.exists()


def test_a_live_rehearsal_runs_the_hooks_times_them_and_undoes_them(file: Path) -> None:
    mark, undone = file.parent / "ran", file.parent / "undone"
    undo = f"undo_argv = {json.dumps(['touch', str(undone)])}"
    hook = a_command("touch", str(mark), more=undo)

    result = invoke("agent", "rehearse", "preempt", "--live", "--config", str(written(file, hook)))
    as_json = invoke(
        "agent", "rehearse", "preempt", "--live", "--json", "--config", str(file)
    ).stdout

    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith("Would miss none.\n")
    assert mark.exists()
    assert undone.exists()
    found = json.loads(as_json)
    assert found["resource"] == "web"
    assert [(s["phase"], s["verdict"]) for s in found["steps"]] == [
        ("prepare", "done"),
        ("undo", "done"),
    ]
    assert {fit["type"]: fit["missed"] for fit in found["fits"]}["Preempt"] is False


def test_a_rehearsal_that_fails_or_takes_too_long_is_told_by_the_exit_code(file: Path) -> None:
    failing = invoke(
        "agent", "rehearse", "freeze", "--live", "--config", str(written(file, a_command("false")))
    )
    late = invoke(
        *("agent", "rehearse", "preempt", "--config"),
        str(written(file, a_command("true", more='timeout = "31s"'))),
    )

    assert failing.exit_code == late.exit_code == 1
    assert "would not be ready for a Freeze" in failing.stderr
    assert "drain" in failing.stdout
    assert "would not be ready for a Preempt" in late.stderr


def test_a_rehearsal_asks_what_this_vm_is_called(file: Path) -> None:
    text = written(file, a_command("true")).read_text()
    file.write_text(text.replace('resource = "web"\n', ""))

    result = invoke("agent", "rehearse", "reboot", "--config", str(file))

    assert result.exit_code == 3
    assert "this VM's name is not known" in result.stderr
    assert "'resource' in [agent]" in result.stderr


def planned(file: Path, *facts: AnyFact) -> None:
    """An agent has seen an event, and is no more."""
    plan = Planned(event_id=EVENT, at=NOON, sighting=a_sighting(), plan=a_plan())
    with Journal(load(file, environ={}).journal) as journal:
        for fact in (plan, *facts):
            journal.write(fact)


def test_nothing_is_rehearsed_live_while_an_event_is_under_way(file: Path) -> None:
    """I30: what was prepared for a real event is not undone by a rehearsal."""
    mark = file.parent / "ran"
    written(file, a_command("touch", str(mark)))
    planned(file)

    unfinished = invoke("agent", "rehearse", "reboot", "--live", "--config", str(file))
    described = invoke("agent", "rehearse", "reboot", "--config", str(file))
    with sole_agent(file.parent / "state"):
        unknown = invoke("agent", "rehearse", "reboot", "--live", "--config", str(file))
    with an_agent(an_event(OTHER)) as address:
        file.write_text(file.read_text().replace('"off"', f'"{address}"'))
        running = invoke("agent", "rehearse", "reboot", "--live", "--config", str(file))

    assert [r.exit_code for r in (unfinished, unknown, running, described)] == [1, 1, 1, 0]
    assert f"at work on event {EVENT}" in unfinished.stderr
    assert "another agent" in unknown.stderr
    assert f"at work on event {OTHER}" in running.stderr
    assert not mark.exists()


def test_what_is_over_does_not_stand_in_the_way_of_a_rehearsal(file: Path) -> None:
    written(file, a_command("true"))
    planned(file, Finished(event_id=EVENT, at=NOON))

    alone = invoke("agent", "rehearse", "reboot", "--live", "--config", str(file))
    with an_agent(an_event(stage=Stage.FINISHED)) as address:
        file.write_text(file.read_text().replace('"off"', f'"{address}"'))
        running = invoke("agent", "rehearse", "reboot", "--live", "--config", str(file))

    assert alone.exit_code == running.exit_code == 0, alone.stderr


# --- status and explain --------------------------------------------------------------------------


def an_event(event_id: str = EVENT, *, stage: Stage = Stage.PREPARING) -> EventStatus:
    return EventStatus(
        event_id=event_id,
        type="Reboot",
        source="Platform",
        resources=("web_0", "web_1"),
        stage=stage,
        rule="reboots",
        waits_for="drain: 3 sessions of web/one",
        not_before=NOON + 10 * MINUTE,
        time_left="10m",
        approve="when-ready",
        leader="each",
        came_back=stage is Stage.RESTORING,
        steps=(
            StepStatus(phase="prepare", step="tell", state="failed", required=False, took="2s"),
            StepStatus(phase="prepare", step="drain", state="running", limit="30s"),
            StepStatus(phase="undo", step="drain", state="to come", detail="ready web/one"),
        ),
    )


def a_status(*events: EventStatus, healthy: bool = True) -> AgentStatus:
    return AgentStatus(
        now=NOON,
        version="1",
        resource="web_0",
        endpoint="http://169.254.169.254",
        started_at=NOON - MINUTE,
        healthy=healthy,
        ready=not events,
        why="" if healthy and not events else "it prepares for a Reboot",
        document_at=NOON - MINUTE / 60,
        incarnation=4,
        events=events,
    )


@contextmanager
def answering(body: bytes, status: int = 200) -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        asked: ClassVar[list[str]] = []

        def do_GET(self) -> None:
            self.asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
    assert set(Answers.asked) == {"/status"}


@contextmanager
def an_agent(*events: EventStatus) -> Iterator[str]:
    with answering(msgspec.json.encode(a_status(*events))) as address:
        yield address


def test_status_tells_how_the_agent_is_and_what_it_does_about_open_events() -> None:
    with an_agent(an_event(), an_event(OTHER, stage=Stage.FINISHED)) as address:
        result = invoke("agent", "status", "--agent", address)
        every = invoke("agent", "status", "--all", NOTBEFORE_AGENT=address)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "web_0  healthy, not ready: it prepares for a Reboot",
        "  reads          http://169.254.169.254",
        "  document       incarnation 4, 1s ago",
        "  running since  2026-01-05 11:59:00 UTC (1m ago)",
        "  version        1",
        "",
        "Event    Type   Stage     Left Rule    Waits for",
        "0000000A Reboot preparing 10m  reboots drain: 3 sessions of web/one",
    ]
    assert "0000000B Reboot finished" in every.stdout


def test_an_agent_without_events_says_so() -> None:
    with an_agent() as address:
        result = invoke("agent", "status", "--agent", address)

    assert result.stdout.startswith("web_0  healthy, ready\n")
    assert result.stdout.endswith("No events.\n")


def test_as_json_status_is_what_the_agent_said() -> None:
    with an_agent(an_event()) as address:
        status = invoke("agent", "status", "--agent", address, "--json")
        event = invoke("agent", "explain", "--agent", address, "--json")

    assert json.loads(status.stdout)["events"][0]["event_id"] == EVENT
    assert json.loads(event.stdout) == json.loads(status.stdout)["events"][0]


def test_explain_names_the_rule_the_step_what_it_waits_for_and_the_time_left() -> None:
    with an_agent(an_event(), an_event(OTHER, stage=Stage.FINISHED)) as address:
        result = invoke("agent", "explain", "--agent", address)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"Reboot {EVENT} preparing",
        "  VMs          web_0, web_1",
        "  source       Platform",
        "  duration     unknown",
        "  NotBefore    2026-01-05 12:10:00 UTC",
        "",
        "  rule         reboots",
        "  step         drain (prepare), for 30s at most",
        "  waits for    drain: 3 sessions of web/one",
        "  time left    10m",
        "  approval     when-ready by each; not given yet",
        "",
        "Phase   Step            State   Took Detail",
        "prepare tell (optional) failed  2s",
        "prepare drain           running",
        "undo    drain           to come      ready web/one",
    ]


def test_an_event_is_found_by_the_beginning_of_its_id() -> None:
    with an_agent(an_event(stage=Stage.FINISHED), an_event(OTHER)) as address:
        finished = invoke("agent", "explain", "0000000a", "--agent", address)
        only_open = invoke("agent", "explain", "0000", "--agent", address)
        unknown = invoke("agent", "explain", "F", "--agent", address)

    assert EVENT in finished.stdout
    assert OTHER in only_open.stdout
    assert unknown.exit_code == 1
    assert "the agent knows no event 'F'" in unknown.stderr


def test_where_several_events_fit_they_are_listed() -> None:
    with an_agent(an_event(), an_event(OTHER)) as address:
        result = invoke("agent", "explain", "--agent", address)

    assert result.exit_code == 1
    assert "several events are open: say which" in result.stderr
    assert f"{OTHER}  Reboot of web_0, web_1" in result.stderr


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (msgspec.structs.replace(an_event(), approved=True), "approval     given"),
        (
            msgspec.structs.replace(an_event(), not_approved_because="step 'x' vetoes"),
            "when-ready by each; not given: step 'x' vetoes",
        ),
        (msgspec.structs.replace(an_event(), rule=""), "rule         none: nothing is done"),
        (an_event(stage=Stage.RESTORING), "restarted    yes"),
    ],
)
def test_explain_tells_why(event: EventStatus, told: str) -> None:
    with an_agent(event) as address:
        assert told in invoke("agent", "explain", "--agent", address).stdout


def test_a_name_can_not_steer_the_terminal() -> None:
    event = msgspec.structs.replace(an_event(), waits_for="\x1b[2Jgone", resources=("a\nb",))
    with an_agent(event) as address:
        shown = invoke("agent", "explain", "--agent", address).stdout
        shown += invoke("agent", "status", "--agent", address).stdout

    assert "\x1b" not in shown
    assert "a\ufffdb" in shown


def test_without_an_agent_it_is_said_how_to_start_one() -> None:
    result = invoke("agent", "status", "--agent", "127.0.0.1:1")

    assert result.exit_code == 3
    assert "Start it with 'notbefore agent run'." in result.stderr


def test_what_is_no_agent_is_told_from_one() -> None:
    with answering(b"{}") as address:
        strange = invoke("agent", "status", "--agent", address)
    with answering(b"", status=404) as address:
        missing = invoke("agent", "status", "--agent", address)

    assert strange.exit_code == missing.exit_code == 4
    assert "does not answer as an agent: it answered 404" in missing.stderr
    assert invoke("agent", "status", "--agent", "no address").exit_code == 2
