"""A scenario against a running emulator whose VMs are served by a process of their own."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.cli.served import invoke
from tests.end_to_end.server_process import serving

SCENARIO = """
name = "run"
title = "Run"

[[fleet]]
name = "db-0"

[[fleet]]
name = "db-1"

[[step]]
do = "maintain"
name = "freeze"

[[step]]
do = "wait_approved"
event = "freeze"
within = "60s"

[[step]]
do = "schedule"
name = "other"
type = "Reboot"
vms = ["db-1"]

[[step]]
do = "approve"
event = "other"
by = "db-1"

[[step]]
do = "fault"
name = "errors"
status = 503
times = 2

[[step]]
do = "advance"
by = "20m"

[[step]]
do = "fail"
name = "failure"

[[step]]
do = "complete"
event = "failure"

[[expect]]
that = "recovered"
after = "errors"
within = "60s"

[[expect]]
that = "sent_header"
header = "Metadata"

[[expect]]
that = "approved_once"
event = "freeze"

[[expect]]
that = "not_approved"
event = "failure"
"""


@contextmanager
def handling(endpoint: str, *, over: threading.Event) -> Iterator[None]:
    """A handler on a thread, until the block ends."""
    url = f"{endpoint}/metadata/scheduledevents?api-version=2020-07-01"

    def ask(body: bytes | None = None) -> bytes:
        request = urllib.request.Request(url, data=body, headers={"Metadata": "true"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            read: bytes = answer.read()
            return read

    def wants(event: dict[str, Any]) -> bool:
        return bool(event["EventStatus"] == "Scheduled" and event["Resources"] == ["db-0"])

    def run() -> None:
        done: set[str] = set()
        while not over.wait(0.05):
            with suppress(OSError):
                for event in filter(wants, json.loads(ask())["Events"]):
                    if event["EventId"] not in done:
                        done.add(event["EventId"])
                        approval = {"StartRequests": [{"EventId": event["EventId"]}]}
                        ask(json.dumps(approval).encode())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_scenario_is_run_and_the_emulator_is_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(SCENARIO)
    with (
        serving(tmp_path, "--clock", "paused") as server,
        handling(f"http://{server.metadata}/vm/db-0", over=threading.Event()),
    ):
        ran = invoke("--control", str(server.control), "--json", "scenario", "run", str(file))
        faults = server.call("GET", "/v1/faults")["faults"]
        clock = server.call("GET", "/v1/clock")

    report = json.loads(ran.stdout)
    assert [each["standing"] for each in report["findings"]] == ["held"] * 4, report
    for seen in (
        "POST /vm/db-0/metadata/scheduledevents?api-version=2020-07-01 → 200",
        "event: Freeze of db-0 is Scheduled",
        "event: Freeze of db-0 is Started, approved by VM db-0",
        "event: Reboot of db-1 is Started, approved by VM db-1",
        "event: Redeploy of db-0 is Completed",
    ):
        assert seen in ran.stderr, ran.stderr
    assert (faults, clock["state"]) == ([], "paused")
