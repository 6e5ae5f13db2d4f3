"""What the agent shows to probes and to people."""

import asyncio
import socket
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta

import msgspec
import pytest

from forewarned.agent.model import HookOutcome, Phase, Turn, Verdict
from forewarned.agent.status.listener import Listener, ListenError
from forewarned.agent.status.metrics import Counters, render
from forewarned.agent.status.wire import AgentStatus, EventStatus, Stage
from tests.agent.journeys import EVENT
from tests.builders import NOON, SECOND


def a_status(*events: EventStatus, ready: bool = True) -> AgentStatus:
    return AgentStatus(
        now=NOON,
        version="1",
        resource="web_0",
        endpoint="",
        started_at=NOON,
        healthy=True,
        ready=ready,
        events=events,
    )


def an_event_status(event_id: str = EVENT, *, time_left: str = "14m59s") -> EventStatus:
    return EventStatus(
        event_id=event_id,
        type="Reboot",
        source="Platform",
        resources=("web_0",),
        stage=Stage.PREPARING,
        rule="any",
        waits_for="",
        time_left=time_left,
    )


def a_listener(port: int = 0, *, status: AgentStatus | None = None) -> Listener:
    shown = status or a_status()
    return Listener("127.0.0.1", port, status=lambda: shown, metrics=lambda: "a 1\n")


async def ask(listener: Listener, request: bytes) -> tuple[bytes, bytes]:
    """The status line, and the body."""
    reader, writer = await asyncio.open_connection(*listener.address)
    writer.write(request)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], body


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"503 Service Unavailable", b"no document\n"),
        (b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK", b"ok\n"),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", b"200 OK", b"a 1\n"),
        (b"GET /nothing HTTP/1.1\r\n\r\n", b"404 Not Found", None),
        (b"POST /status HTTP/1.1\r\n\r\n", b"405 Method Not Allowed", None),
        (b"nonsense\r\n\r\n", b"400 Bad Request", None),
        (b"GET /readyz", b"400 Bad Request", None),
        (b"GET /readyz HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", b"400 Bad Request", None),
    ],
)
async def test_it_answers_probes_and_refuses_the_rest(
    request_: bytes, status: bytes, body: bytes | None
) -> None:
    ill = msgspec.structs.replace(a_status(), healthy=False, why="no document")

    async with a_listener(status=ill) as listener:
        said, found = await ask(listener, request_)

    assert said == b"HTTP/1.1 " + status
    assert body is None or found == body


@pytest.mark.anyio
async def test_the_status_is_read_by_whoever_knows_its_shape() -> None:
    async with a_listener() as listener:
        _, body = await ask(listener, b"GET /status HTTP/1.1\r\n\r\n")

    assert msgspec.json.decode(body, type=AgentStatus) == a_status()


@pytest.mark.anyio
async def test_an_address_in_use_is_said_to_be_so() -> None:
    async with a_listener() as listener:
        _, port = listener.address
        with pytest.raises(ListenError, match=f"127.0.0.1:{port}"):
            async with a_listener(port):
                pass


def test_the_metrics_count_hooks_events_and_the_time_left() -> None:
    counters = Counters()
    turn = Turn(Phase.PREPARE, "drain")
    counters.ended(turn, HookOutcome(verdict=Verdict.DONE, took=2 * SECOND))
    counters.ended(turn, HookOutcome(verdict=Verdict.FAILED, took=SECOND))
    counters.approvals = 3

    text = render(a_status(an_event_status(), ready=False), counters, age=timedelta(seconds=1.5))

    lines = Counter(text.splitlines())
    for line in (
        "forewarned_agent_ready 0",
        "forewarned_agent_document_age_seconds 1.5",
        'forewarned_agent_events{stage="preparing"} 1',
        'forewarned_agent_events{stage="finished"} 0',
        f'forewarned_agent_seconds_to_not_before{{event="{EVENT}",type="Reboot"}} 899.0',
        'forewarned_agent_hooks_total{step="drain",phase="prepare",verdict="failed"} 1',
        'forewarned_agent_hook_seconds_total{step="drain",phase="prepare"} 3.0',
        'forewarned_agent_approvals_total{taken="yes"} 3',
    ):
        assert lines[line] == 1, text


def test_the_metrics_count_what_somebody_has_to_see_to() -> None:
    event = msgspec.structs.replace(
        an_event_status(), stage=Stage.FINISHED, not_put_back=("drain", "stop"), reappeared=True
    )

    lines = render(a_status(event), Counters(), age=None).splitlines()

    assert "forewarned_agent_not_put_back 2" in lines
    assert "forewarned_agent_events_reappeared 1" in lines


def test_no_event_can_forge_a_line_of_the_metrics() -> None:
    """S14."""
    event = an_event_status('x"} 1\nforged 1', time_left="-5s")

    text = render(a_status(event), Counters(), age=None)

    assert "\nforged" not in text
    assert r'event="x\"} 1\nforged 1",type="Reboot"} -5.0' in text
    assert "document_age_seconds 0" not in text


def test_an_agent_that_ends_under_an_open_connection_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live_and_end() -> None:
        async with a_listener() as listener:
            stack.enter_context(socket.create_connection(listener.address))
            # It comes after the other one, so that has been taken as well.
            await ask(listener, b"GET /healthz HTTP/1.1\r\n\r\n")

    with ExitStack() as stack:
        asyncio.run(live_and_end())

    assert [record for record in caplog.records if record.name == "asyncio"] == []
