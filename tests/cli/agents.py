"""An agent's listener that says what a test wants it to."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final

import msgspec
from typing_extensions import override

from forewarned.agent.status.wire import AgentStatus, EventStatus, Stage, StepStatus
from tests.builders import MINUTE, NOON

EVENT: Final = "0000000A-0000-4000-8000-000000000000"
OTHER: Final = "0000000B-0000-4000-8000-000000000000"


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


def a_status(
    *events: EventStatus,
    healthy: bool = True,
    warnings: tuple[str, ...] = (),
    ahead: timedelta = timedelta(0),
) -> AgentStatus:
    """`ahead` is the service's clock of this VM's."""
    return AgentStatus(
        now=NOON,
        version="1",
        resource="web_0",
        endpoint="http://169.254.169.254",
        started_at=NOON - MINUTE,
        healthy=healthy,
        ready=not events,
        why="" if healthy and not events else "it prepares for a Reboot",
        warnings=warnings,
        service_now=NOON + ahead,
        document_at=NOON + ahead - MINUTE / 60,
        document_age="1s",
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
def an_agent(
    *events: EventStatus, warnings: tuple[str, ...] = (), ahead: timedelta = timedelta(0)
) -> Iterator[str]:
    status = a_status(*events, warnings=warnings, ahead=ahead)
    with answering(msgspec.json.encode(status)) as address:
        yield address
