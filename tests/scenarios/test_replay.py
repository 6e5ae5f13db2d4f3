"""A scenario whose step plays a recording back to the handler."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarned.recordings.form import Answered, Began, encode
from forewarned.scenarios.file import ScenarioFileError, load
from forewarned.scenarios.player import play
from forewarned.scenarios.stages.in_process import EmulatorStage
from forewarned.testing._handlers import FunctionHandler
from tests.scenarios.small_handler import small_handler

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
IDS = [f"{letter * 8}-0000-4000-8000-000000000000" for letter in "AB"]
SCENARIO = """
name = "recorded"
title = "What Azure sent"

[[fleet]]
name = "web_0"

[[step]]
do = "replay"
name = "first"
file = "first.jsonl"

[[step]]
do = "advance"
by = "1m"

[[step]]
do = "wait_approved"
event = "first"

[[step]]
do = "replay"
name = "second"
file = "second.jsonl"

[[step]]
do = "advance"
by = "1m"

[[expect]]
that = "approved"
event = "first"
within = "60s"
after = "second"

[[expect]]
that = "approved"
event = "second"
within = "60s"

[[expect]]
that = "not_answered"
status = 400
"""


def record(path: Path, event_id: str) -> None:
    """Nothing, and a minute later an event."""
    event = {"EventId": event_id, "EventStatus": "Scheduled", "EventType": "Reboot"}
    event |= {"Resources": ["web_0"], "NotBefore": "Mon, 05 Jan 2026 12:16:00 GMT"}  # type: ignore[dict-item]
    path.write_bytes(
        encode(Began(at=NOON, recording=1, vm="web_0"))
        + b"".join(
            encode(
                Answered(
                    at=NOON + timedelta(minutes=minute),
                    status=200,
                    body=json.dumps({"DocumentIncarnation": 40 + minute, "Events": events}),
                )
            )
            for minute, events in enumerate(([], [event]))
        )
    )


async def test_a_handler_is_examined_with_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    for name, event_id in zip(("first", "second"), IDS, strict=True):
        record(tmp_path / f"{name}.jsonl", event_id)

    async with EmulatorStage() as stage:
        handler = FunctionHandler(small_handler())
        report = await play(load(path), stage, handler, folder=tmp_path)

    assert report.is_passed, report.broken


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), (b"name = 1\n", "not a recording|line 1 can't be read")],
)
def test_a_recording_that_cant_be_read_is_a_mistake_with_its_line(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    record(tmp_path / "second.jsonl", IDS[1])
    if content is not None:
        (tmp_path / "first.jsonl").write_bytes(content)

    with pytest.raises(ScenarioFileError, match=rf":11: .*first\.jsonl.*({message})"):
        load(path)
