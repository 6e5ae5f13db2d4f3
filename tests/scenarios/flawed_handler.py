"""A handler of scheduled events that passes the standard examination, unless it is given a flaw.

It is run as a program: `python flawed_handler.py [FLAW]`. Each flaw is one that handlers in the
wild have, and is named after the scenario that finds it. Only the standard library, so that it
starts quickly.
"""

import http.client
import json
import os
import sys
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FLAW = sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else ""
FLAWS = (
    "user-restart",
    "life-cycle",
    "approve-once",
    "own-events",
    "several-events",
    "several-vms",
    "born-started",
    "cancel",
    "preempt",
    "terminate",
    "pending-at-start",
    "metadata-header",
    "error-500",
    "too-many-requests",
    "gone-410",
    "connection-reset",
    "cut-off",
    "malformed",
    "empty-body",
    "unknown-fields",
    "unknown-event",
    "slow-first-call",
    "service-restart",
    "incarnation-reset",
    "incarnation-gap",
    "polling-rate",
    "proxy",
    "approval-refused",
    "freeze",
    "terminate-batch",
    "killed",
    "leader",
    "api-version",
)

ENDPOINT = os.environ.get("FOREWARNED_ENDPOINT", "http://169.254.169.254")
STATE = Path(os.environ.get("STATE_DIRECTORY", ".")) / "approved"
EVERY = {"preempt": 18.0, "polling-rate": 0.01}.get(FLAW, 0.3)
PATIENCE = 5.0 if FLAW == "slow-first-call" else 60.0
VERSION = {"terminate": "2017-11-01", "api-version": "2019-08-01"}.get(FLAW, "2020-07-01")
EVENTS = "/metadata/scheduledevents?api-version="
FIELDS = {"EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore"}
FIELDS |= {"Description", "EventSource", "DurationInSeconds"}
TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")

Document = dict[str, Any]
Event = dict[str, Any]


class Fatal(SystemExit):
    """What a flawed handler does not survive."""


def pause(seconds: float) -> None:
    time.sleep(seconds)  # noqa: TID251  # a program of its own, which has no other clock


def ask(method: str, target: str, body: str | None = None, *, headers: bool = True) -> bytes:
    """Raises OSError, also for an answer that is no success, and http.client.HTTPException."""
    place = urlsplit(ENDPOINT)
    if FLAW == "proxy" and os.environ.get("http_proxy"):
        place, target = urlsplit(os.environ["http_proxy"]), f"{ENDPOINT}{target}"
    else:
        target = f"{place.path}{target}"
    connection = http.client.HTTPConnection(place.netloc, timeout=PATIENCE)
    try:
        connection.request(method, target, body, {"Metadata": "true"} if headers else {})
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise OSError(answer.status, "refused")
    return content


def read() -> Document | None:
    """None if it can't be read now. Raises Fatal where the flaw is to die of that."""
    try:
        document: Document = json.loads(ask("GET", f"{EVENTS}{VERSION}"))
    except Exception as error:
        if dies_of(error):
            raise Fatal(f"{FLAW}: {error!r}") from error
        if is_taken_for_empty(error):
            return {"DocumentIncarnation": 0, "Events": []}
        if FLAW != "too-many-requests" and error.args[:1] == (429,):
            pause(1.1)
        return None
    return document


def dies_of(error: Exception) -> bool:
    status = error.args[0] if isinstance(error, OSError) and error.args else None
    return {
        "gone-410": status == http.HTTPStatus.GONE,
        "connection-reset": isinstance(error, ConnectionResetError),
        "malformed": isinstance(error, ValueError) and "char 0" not in str(error),
        "empty-body": isinstance(error, ValueError) and "char 0" in str(error),
        "slow-first-call": isinstance(error, TimeoutError),
        "service-restart": isinstance(error, ConnectionRefusedError),
    }.get(FLAW, False)


def is_taken_for_empty(error: Exception) -> bool:
    if FLAW == "cut-off":
        return isinstance(error, http.client.IncompleteRead)
    return FLAW == "error-500" and error.args[:1] == (http.HTTPStatus.INTERNAL_SERVER_ERROR,)


def is_mine(event: Event, name: str) -> bool:
    resources = event["Resources"]
    if FLAW == "own-events" and event["EventType"] != "Terminate" and len(resources) == 1:
        return True
    if FLAW == "terminate-batch" and event["EventType"] == "Terminate":
        return True
    if FLAW == "several-vms":
        return bool(resources == [name])
    if name not in resources:
        return False
    if FLAW == "leader" or len(resources) == 1:
        return True
    return bool(resources[0] == name)


def wanted(document: Document, name: str, done: set[str]) -> Iterator[Event]:
    events = document["Events"]
    for event in events[:1] if FLAW == "several-events" else events:
        if FLAW == "unknown-fields" and set(event) - FIELDS:
            raise Fatal("an unknown field")
        if FLAW == "unknown-event":
            TYPES.index(event["EventType"])
        if not is_mine(event, name) or event["EventId"] in done:
            continue
        if FLAW == "born-started":
            parsedate_to_datetime(event["NotBefore"])
        if event["EventStatus"] == "Scheduled" and not is_ignored(event):
            yield event


def is_ignored(event: Event) -> bool:
    if FLAW == "user-restart":
        return (event["EventType"], event["EventSource"]) == ("Reboot", "User")
    return FLAW == "freeze" and event["EventType"] == "Freeze"


def approve(event: Event) -> bool:
    body = json.dumps({"StartRequests": [{"EventId": event["EventId"]}]})
    is_old = FLAW == "metadata-header"
    try:
        ask("POST", f"{EVENTS}{'2017-03-01' if is_old else VERSION}", body, headers=not is_old)
    except (OSError, http.client.HTTPException):
        return FLAW == "approval-refused"
    return True


def wait_for(event: Event, status: str) -> None:
    """What a handler does that can't imagine another end."""
    while status_of(event) != status:
        pause(EVERY)


def is_started(event: Event) -> bool:
    """Once it is, or never will be."""
    while (status := status_of(event)) == "Scheduled":
        pause(EVERY)
    return status == "Started"


def status_of(event: Event) -> str | None:
    document = read()
    if document is None:
        return "Scheduled"
    found = [each for each in document["Events"] if each["EventId"] == event["EventId"]]
    return found[0]["EventStatus"] if found else None


def name_of_vm() -> str:
    while True:
        try:
            compute = json.loads(ask("GET", "/metadata/instance?api-version=2021-02-01"))
            return str(compute["compute"]["name"])
        except (OSError, http.client.HTTPException, ValueError):
            pause(EVERY)


def main() -> None:
    done = set(STATE.read_text().split()) if STATE.exists() and FLAW != "killed" else set()
    name = name_of_vm()
    last: int | None = None
    is_first = True
    while True:
        document = read()
        if document is not None and is_news(document["DocumentIncarnation"], last):
            last = document["DocumentIncarnation"]
            ids = {event["EventId"] for event in document["Events"]}
            if FLAW in {"error-500", "cut-off"}:
                done &= ids
            if FLAW == "pending-at-start" and is_first:
                done |= ids
            is_first = False
            approved = [event for event in wanted(document, name, done) if approve(event)]
            done |= {event["EventId"] for event in approved}
            if approved:
                # In one step, because it may be killed in the middle of it.
                new = STATE.with_suffix(".new")
                new.write_text("\n".join(done))
                new.replace(STATE)
            if FLAW == "approve-once":
                done.clear()
            for event in approved:
                if FLAW == "cancel":
                    wait_for(event, "Started")
                if FLAW == "life-cycle" and is_started(event):
                    wait_for(event, "Completed")
        pause(EVERY)


def is_news(incarnation: int, last: int | None) -> bool:
    if last is None:
        return True
    if FLAW == "incarnation-reset":
        return incarnation >= last
    if FLAW == "incarnation-gap":
        return incarnation in range(last, last + 3)
    return True


if __name__ == "__main__":
    main()
