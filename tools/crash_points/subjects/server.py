"""The whole server in one process, driven over HTTP: what it answers with 200 is durable (I14)."""

import atexit
import functools
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from forewarned.cli.app import main
from tests.end_to_end.server_process import DOCUMENT, METADATA, serving
from tools.crash_points.subject import (
    ACKED,
    ASKED,
    REFUSED,
    STOPPED,
    UNKNOWN,
    Life,
    Tell,
    Verdict,
    compare,
    refusals,
    those,
)
from tools.crash_points.subjects.store import ACTIONS

VMS: Final = ("a", "b", "c")
FLEET: Final = "".join(f'[[vms]]\nname = "{name}"\n' for name in VMS)
_PATIENCE: Final = 60.0
_LISTENS: Final = re.compile(r"printed +(metadata|control) +https?://(\S+)$")
_READY: Final = "printed Stop with"


class _RefusedError(Exception):
    """What follows from it can't be asked for."""


class ServerSubject:
    name = "server"
    title = "the whole server"

    def prepare(self, folder: Path) -> None:
        shutil.copytree(_served_before(), folder.parent, dirs_exist_ok=True)

    def live(self, folder: Path, tell: Tell) -> None:
        log = folder.parent / "log of the killed"
        sys.stdout = _Printed(tell)
        # Appended line by line, so that all is there after a kill.
        sys.stderr = log.open("a", buffering=1)
        os.chdir(folder.parent)
        anywhere = [f"--{each}=127.0.0.1:0" for each in ("metadata", "control", "arm")]
        more = ("--clock=paused", "--workers=0", f"--data={folder}", "--fleet=fleet.toml")
        sys.argv = ["forewarned", "serve", *anywhere, *more]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                said = log.read_text().strip().splitlines()
                tell(f"{STOPPED} {said[-1] if said else 'without a word'}")

    def attend(self, life: Life) -> list[str]:
        told: list[str] = []
        while lines := life.lines():
            told += lines
            if any(line.startswith(_READY) for line in lines):
                found = (_LISTENS.match(line) for line in told)
                driver = _Driver({each[1]: each[2] for each in found if each})
                told += driver.drive(until_refused=life.dies_when_refused)
                dies = life.dies_when_refused and refusals(told)
                with suppress(ProcessLookupError):
                    os.kill(life.pid, signal.SIGKILL if dies else signal.SIGTERM)
        return [*told, *life.told()]

    def judge(self, folder: Path, told: Sequence[str]) -> Verdict:
        with serving(folder.parent, "--fleet", "fleet.toml") as server:
            rows = server.call("GET", "/v1/history?limit=1000")["history"]
            events = server.call("GET", "/v1/events?status=all&limit=1000")["events"]
            statuses = {name: server.get(f"/vm/{name}{DOCUMENT}").status for name in VMS}
        recovered = [
            f"{row['action']} {row['resources'][0]}" for row in rows if row["action"] in ACTIONS
        ]
        verdict = compare(told, recovered)
        log = (folder.parent / "log of the killed").read_text()
        return Verdict(
            lost=verdict.lost,
            doubled=[*verdict.doubled, *_started_twice(rows)],
            wrong=[
                *verdict.wrong,
                *(f"{name} reads {status}" for name, status in statuses.items() if status != 200),
                *([f"{len(events)} events"] if len(events) > len(VMS) else []),
                *(["the log has a traceback"] if "Traceback" in log else []),
                *(f"answered {each}" for each in those(told, "answered")),
            ],
        )


@functools.cache
def _served_before() -> Path:
    """What a server leaves whose VMs have read, so that their events are announced.

    Made once: to start a server is most of what a run takes.
    """
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    (folder / "fleet.toml").write_text(FLEET)
    with serving(folder, "--fleet", "fleet.toml") as server:
        for name in VMS:
            assert server.get(f"/vm/{name}{DOCUMENT}").status == 200
    return folder


# Any: rows of the JSON of /v1.
def _started_twice(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    starts = [row["resources"][0] for row in rows if row["action"] == "started"]
    return [f"started {name}" for name in sorted(set(starts)) if starts.count(name) > 1]


class _Driver:
    """Operators and VMs, who are told of every answer."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses
        self._told: list[str] = []
        self._tries = 0

    def drive(self, *, until_refused: bool) -> list[str]:
        self._tries = 1 if until_refused else 2
        # It may die at any moment.
        with suppress(OSError, HTTPException):
            for name in VMS:
                try:
                    self._play(name)
                except _RefusedError:
                    if until_refused:
                        break
        return self._told

    def _play(self, name: str) -> None:
        body = {"type": "Freeze", "resources": [name]}
        made = self._ask(f"scheduled {name}", "POST", "/v1/events", body)
        event_id = made["events"][0]["event_id"]
        if name == "c":
            self._ask(f"canceled {name}", "POST", f"/v1/events/{event_id}/cancel", {"reason": "x"})
            return
        approval = {"StartRequests": [{"EventId": event_id}]}
        self._ask(f"approved {name}", "POST", f"/vm/{name}{DOCUMENT}", approval, at="metadata")
        if name == "a":
            self._ask(f"completed {name}", "POST", f"/v1/events/{event_id}/complete", {})

    def _ask(
        self, what: str, method: str, path: str, body: object, *, at: str = "control"
    ) -> Any:  # the JSON of the answer
        """Once more if it is refused. Raises _RefusedError if it is refused again."""
        for _ in range(self._tries):
            self._told.append(f"{ASKED} {what}")
            connection = HTTPConnection(self._addresses[at], timeout=_PATIENCE)
            with closing(connection):
                connection.request(
                    method, path, json.dumps(body), METADATA | {"Content-Type": "application/json"}
                )
                response = connection.getresponse()
                answer = response.read()
            if response.status < 300:
                self._told.append(f"{ACKED} {what}")
                return json.loads(answer or b"null")
            said = answer.decode()
            word = _word(response.status, said, at=at)
            self._told.append(f"{word} {what}: {said}")
            if word == UNKNOWN and at == "control":
                # Asked for again it might be done twice. An approval counts once (I12).
                break
        raise _RefusedError


def _word(status: int, said: str, *, at: str) -> str:
    if status != 503:
        return f"answered {status} to"
    # A VM is told to try again, which is right whatever has become of its approval.
    is_known = at == "control" and "unknown_outcome" not in said
    return REFUSED if is_known else UNKNOWN


class _Printed:
    """Standard output whose lines are told."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._tell(f"printed {line}")
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False
