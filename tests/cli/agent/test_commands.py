"""The agent's commands: its file checked, the agent started, and an event rehearsed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.agent.config.settings import load
from forewarned.agent.journal import AnyFact, Finished, Journal, Planned
from forewarned.agent.lock import sole_agent
from forewarned.agent.status.wire import Stage
from forewarned.cli.agent.check import check_targets
from tests.agent.hooks.http_service import Asked, Reply
from tests.agent.hooks.http_service import answering as metadata
from tests.agent.journeys import a_plan, a_sighting
from tests.builders import NOON
from tests.cli.agents import EVENT, OTHER, an_agent, an_event
from tests.cli.interrupts import interruptible
from tests.cli.served import invoke

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
    assert result.stdout.endswith("1 rule, 1 hook; no mistakes\n")
    assert list(file.parent.iterdir()) == [file]


def test_all_mistakes_of_a_file_are_listed(file: Path) -> None:
    file.write_text('[agent]\npol = "1s"\n[[rules]]\nname = "any"\nprepare = ["drain"]\n')

    result = invoke("agent", "check", str(file))
    as_json = invoke("agent", "check", str(file), "--json")

    assert result.exit_code == as_json.exit_code == 1
    assert result.stderr.splitlines() == [
        f"error: 2 mistakes in {file}",
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
    assert "error: 2 problems with targets that the file names" in result.stderr
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
    assert "/token: No such file" in found["agent.readiness"][0]


def test_a_target_that_does_not_answer_is_not_waited_for(file: Path) -> None:
    # Nobody accepts there, and nobody refuses either.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = load(written(file, a_command("true"), endpoint=endpoint), environ={})

        found = asyncio.run(check_targets(settings, patience=timedelta(milliseconds=300)))

    problems = {target.name: target.problems for target in found}
    assert problems["agent.endpoint"] == ("no answer within 0.3 s",)
    assert problems["hooks.drain"] == ()


def versions(asked: Asked) -> Reply:
    """As Azure and NotBefore refuse a version that they don't know."""
    if "api-version=2020-07-01" in asked.path:
        pytest.fail("a document was read, which switches notice on")
    return Reply(status=400, json={"error": "Bad request.", "newest-versions": ["2020-07-01"]})


def a_document(_: Asked) -> Reply:
    return Reply(json={"DocumentIncarnation": 1, "Events": []})


@pytest.mark.parametrize("events", [versions, a_document])
def test_a_service_without_instances_will_do_where_the_file_names_the_vm(
    file: Path, events: Callable[[Asked], Reply]
) -> None:
    """The agent would run there, so nothing is wrong."""

    def answer(asked: Asked) -> Reply:
        is_known = asked.path.startswith("/metadata/scheduledevents?")
        return events(asked) if is_known else Reply(status=404)

    with metadata(answer) as service:
        written(file, a_command("true"), endpoint=service.url)
        named = invoke("agent", "check", str(file))
        file.write_text(file.read_text().replace('resource = "web"\n', ""))
        unnamed = invoke("agent", "check", str(file), "--json")

    assert named.exit_code == 0, named.stdout
    assert unnamed.exit_code == 1
    [problem] = json.loads(unnamed.stdout)["targets"][0]["problems"]
    assert f"{service.url}/metadata/instance?api-version=" in problem
    assert problem.endswith(
        ". If the service can't say which VM this is, set 'resource' to the VM's name"
    )


def test_what_serves_no_events_is_found_though_the_file_names_the_vm(file: Path) -> None:
    with metadata(lambda _: Reply(status=404)) as service:
        written(file, a_command("true"), endpoint=service.url)
        result = invoke("agent", "check", str(file), "--json")

    assert result.exit_code == 1
    [problem] = json.loads(result.stdout)["targets"][0]["problems"]
    assert problem.startswith(f"{service.url}/metadata/scheduledevents?")
    assert problem.endswith("answered 404")


def test_a_vm_that_the_service_does_not_know_is_found_though_the_file_names_it(file: Path) -> None:
    """NotBefore knows instances, so a refusal is about this one: its events are refused, too."""

    def answer(asked: Asked) -> Reply:
        if asked.path.startswith("/metadata/versions"):
            return Reply(json={"apiVersions": ["2017-03-01", "2021-12-13"]})
        if asked.path.startswith("/metadata/instance"):
            return Reply(status=404, json={"error": "no VM is named 'web'"})
        return versions(asked)

    with metadata(answer) as service:
        written(file, a_command("true"), endpoint=service.url)
        result = invoke("agent", "check", str(file), "--json")

    assert result.exit_code == 1
    [problem] = json.loads(result.stdout)["targets"][0]["problems"]
    assert "no VM is named 'web'" in problem


# --- run -----------------------------------------------------------------------------------------


def test_an_agent_with_a_wrong_file_does_not_start(file: Path) -> None:
    file.write_text("")

    result = invoke("agent", "run", "--config", str(file))

    assert result.exit_code == 2
    assert "there are no rules" in result.stderr


def test_an_agent_without_a_file_says_where_it_looked() -> None:
    result = invoke("agent", "run", FOREWARNED_AGENT_CONFIG="/nowhere/agent.toml")

    assert result.exit_code == 2
    assert result.stderr == "error: can't read /nowhere/agent.toml: No such file or directory\n"


def test_the_agent_needs_no_package_that_serves() -> None:
    modules = "assembly", "rehearsal", "hooks", "readiness.kubernetes", "readiness.server"
    served = "cryptography jwt prometheus_client psycopg starlette uvicorn uvloop httptools"
    code = (
        f"import sys; sys.modules |= dict.fromkeys({served.split()});"
        f"import forewarned.runtime.logs, forewarned.cli.agent.commands, {', '.join(f'forewarned.agent.{m}' for m in modules)};"
        "from forewarned.cli.agent import check, pages, rehearsal"
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
    assert result.stdout.endswith("This VM would not be ready in time for: Preempt.\n")
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
    assert result.stdout.endswith("This VM would be ready in time for every type.\n")
    ran = [line for line in result.stdout.splitlines() if line.startswith(("prepare", "undo"))]
    assert len(ran) == 2
    assert not any(" 0.0s " in line for line in ran)
    assert mark.exists()
    assert undone.exists()
    found = json.loads(as_json)
    assert found["resource"] == "web"
    assert [(s["phase"], s["verdict"]) for s in found["steps"]] == [
        ("prepare", "done"),
        ("undo", "done"),
    ]
    assert {fit["type"]: fit["missed"] for fit in found["fits"]}["Preempt"] is False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_live_rehearsal_that_is_ended_puts_back_what_it_has_prepared(
    file: Path, number: signal.Signals
) -> None:
    """Nothing stays drained because somebody's connection to the VM was lost."""
    begun, undone = file.parent / "begun", file.parent / "undone"
    os.mkfifo(begun)
    undo = f"undo_argv = {json.dumps(['touch', str(undone)])}"
    code = f"import signal; open({str(begun)!r}, 'w').close(); signal.pause()"
    written(file, a_command(sys.executable, "-c", code, more=undo))
    command = ("agent", "rehearse", "reboot", "--live", "--config", str(file))
    with interruptible():
        rehearsal = subprocess.Popen(
            [sys.executable, "-m", "forewarned", *command], stderr=subprocess.PIPE, text=True
        )
    with rehearsal:
        # Opens once the hook has opened it, too.
        begun.read_bytes()
        rehearsal.send_signal(number)
        _, told = rehearsal.communicate(timeout=20)

    assert undone.exists()
    assert rehearsal.returncode == (130 if number is signal.SIGINT else 1)
    assert "Traceback" not in told
    assert number is signal.SIGINT or f"ended by {number.name}" in told


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
    assert "can't find out this VM's name" in result.stderr
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
    assert f"busy with event {EVENT}" in unfinished.stderr
    assert "another agent" in unknown.stderr
    assert f"busy with event {OTHER}" in running.stderr
    assert not mark.exists()


def test_what_is_over_does_not_stand_in_the_way_of_a_rehearsal(file: Path) -> None:
    written(file, a_command("true"))
    planned(file, Finished(event_id=EVENT, at=NOON))

    alone = invoke("agent", "rehearse", "reboot", "--live", "--config", str(file))
    with an_agent(an_event(stage=Stage.FINISHED)) as address:
        file.write_text(file.read_text().replace('"off"', f'"{address}"'))
        running = invoke("agent", "rehearse", "reboot", "--live", "--config", str(file))

    assert alone.exit_code == running.exit_code == 0, alone.stderr
