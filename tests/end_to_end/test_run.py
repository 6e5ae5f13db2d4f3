"""`forewarned run`: programs as VMs, with real processes and real namespaces."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import preloaded
from tests.end_to_end.server_process import environment, serving

NO_MORE: Mapping[str, str] = {}
RUN = (sys.executable, "-m", "forewarned", "run")
# Somebody without any right, who can still read the files of these tests; on a machine of their
# own, as far as the network goes.
UNPRIVILEGED = (
    "unshare",
    "--map-root-user",
    "--net",
    "sh",
    "-c",
    'ip link set lo up; exec unshare --map-user=1000 --map-group=1000 "$@"',
    "sh",
)
# A user namespace in which there can be no network namespace.
FORBIDDEN = (
    "unshare",
    "--map-root-user",
    "sh",
    "-c",
    'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"',
    "sh",
)

PROGRAM = """
import http.client, json, os, sys, urllib.request

DOCUMENT = "/metadata/scheduledevents?api-version=2020-07-01"
CONTROL = os.environ["FOREWARNED_CONTROL"] + "/v1"

def control(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(CONTROL + path, data) as answer:
        return json.load(answer)

# As a program on Azure has it: an address that is always the same, and a connection that is kept.
service = http.client.HTTPConnection("169.254.169.254")

def ask(path=DOCUMENT, body=None):
    service.request("GET" if body is None else "POST", path, body, {"Metadata": "true"})
    return service.getresponse().read()

me = json.loads(ask("/metadata/instance?api-version=2021-12-13"))["compute"]["name"]
known = json.loads(ask())["DocumentIncarnation"]
[event] = control("/events", {"type": "Reboot", "resources": [me]})["events"]
waited = json.loads(ask(f"{DOCUMENT}&wait=30s&last-incarnation={known}"))
ids = [{"EventId": each["EventId"]} for each in waited["Events"]]
ask(body=json.dumps({"StartRequests": ids}))
after = control(f"/events/{event['event_id']}?wait=approved")
print(me, after["status"], after["approval"]["by"], os.getuid(), os.environ["FOREWARNED_ENDPOINT"])
sys.exit(7)
"""


def run(
    *words: str,
    before: Sequence[str] = (),
    cwd: Path | None = None,
    variables: Mapping[str, str] = NO_MORE,
) -> "subprocess.CompletedProcess[str]":
    if not before:
        return preloaded.run(
            "run", *words, environment=environment(**variables), folder=cwd or Path()
        )
    return subprocess.run(
        [*before, *RUN, *words],
        env=environment(**variables),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextmanager
def running(*words: str, before: Sequence[str] = ()) -> Iterator["subprocess.Popen[str]"]:
    """A program that has said that it is ready."""
    # A shell has its background jobs ignore SIGINT, and so would all that these tests start.
    heeding = ["env", "--default-signal=INT"]
    with subprocess.Popen(
        [*before, *heeding, *RUN, *words], env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def _can(before: Sequence[str]) -> bool:
    words = [*before, "unshare", "--net", "--map-current-user", "true"]
    return bool(shutil.which("unshare")) and not subprocess.run(words, check=False).returncode


needs_namespaces = pytest.mark.skipif(
    not os.environ.get("CI") and not _can(()), reason="this machine allows no network namespaces"
)


@needs_namespaces
@pytest.mark.parametrize(
    ("before", "flags", "uid"),
    [((), ["--private"], os.getuid()), (UNPRIVILEGED, [], 1000)],
    ids=["who runs the tests", "no rights, and none runs"],
)
def test_a_program_finds_the_service_where_azure_has_it(
    tmp_path: Path, before: Sequence[str], flags: Sequence[str], uid: int
) -> None:
    """Without a setting, and with no server started: kept connections, long polls, approvals."""
    words = ("--as", "WEB", "--isolation", "namespace", "--", sys.executable, "-c", PROGRAM)

    done = run(*flags, *words, before=before, cwd=tmp_path, variables={"TMPDIR": str(tmp_path)})

    assert done.stdout == f"web Started vm:web {uid} http://169.254.169.254\n", done.stderr
    assert (done.returncode, done.stderr) == (7, "")
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@needs_namespaces
def test_an_emulator_that_runs_is_the_one(tmp_path: Path) -> None:
    fetch = 'curl -sH Metadata:true "$FOREWARNED_ENDPOINT/metadata/scheduledevents?api-version=2020-07-01"'
    with serving(tmp_path) as server:
        server.get("/vm/report/metadata/scheduledevents?api-version=2020-07-01")
        [event] = server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["report"]})[
            "events"
        ]
        at = {"FOREWARNED_CONTROL": server.control}

        shown = [
            run("--as", "report", "--isolation", how, "sh", "-c", fetch, variables=at).stdout
            for how in ("namespace", "none")
        ]

    assert shown[0] == shown[1]
    assert event["event_id"] in shown[0]


def test_a_namespace_that_can_not_be_is_refused_or_done_without() -> None:
    command = ("--", "sh", "-c", "echo $FOREWARNED_ENDPOINT; exit 3")

    refused = run("--private", "--isolation", "namespace", *command, before=FORBIDDEN)
    without = run("--private", *command, before=FORBIDDEN)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        "can't create a network namespace for the command here (making a network namespace:"
        in refused.stderr
    )
    assert "--isolation none" in refused.stderr
    assert (without.returncode, without.stdout.endswith("/vm/web\n")) == (3, True)
    assert "the command has to read FOREWARNED_ENDPOINT" in without.stderr


@pytest.mark.parametrize("isolation", ["auto", pytest.param("none", marks=pytest.mark.thorough)])
def test_signals_reach_the_program_and_its_exit_code_is_ours(isolation: str) -> None:
    script = "trap 'exit 42' TERM; echo ready; while :; do sleep 0.05; done"
    with running("--private", "--isolation", isolation, "sh", "-c", script) as process:
        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=60) == 42


def test_a_program_that_a_signal_has_ended_is_told_as_a_shell_does() -> None:
    with running("--private", "sh", "-c", "echo ready; exec sleep 60") as process:
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=60) == 128 + signal.SIGINT


@needs_namespaces
@pytest.mark.parametrize(
    "before",
    [
        pytest.param((), id="who runs the tests", marks=pytest.mark.thorough),
        pytest.param(UNPRIVILEGED, id="no rights"),
    ],
)
def test_a_program_does_not_outlive_what_serves_it(before: Sequence[str]) -> None:
    with running("--private", "sh", "-c", "echo ready; exec sleep 60", before=before) as process:
        process.kill()

        # Its end of the pipe is closed when it has ended.
        assert process.stdout is not None
        assert process.stdout.read() == ""
