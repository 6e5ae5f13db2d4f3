"""`forewarned record`: what it prints, and how it ends where it can't go on."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from forewarned.cli.recording.line import told
from forewarned.recordings.form import Answered, Unanswered, decode
from tests.cli.served import PLAIN, invoke
from tests.client.scripted import an_answer, answering

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAME = an_answer(b'{"compute":{"name":"web_0"}}')


def test_a_recording_that_is_full_ends_with_an_error_and_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    bodies = [an_answer(b"%d" % number * 500_000) for number in range(1, 9)]

    with answering(NAME, *bodies) as service:
        done = invoke(
            *("record", service.address, "--to", str(path), "--limit", "1", "--every", "200ms")
        )

    assert done.exit_code == 1
    assert f"{path} has reached its limit of 1000000 bytes" in done.stderr
    assert "a higher --limit" in done.stderr
    found = decode(path.read_bytes())
    assert found.vm == "web_0"
    assert found.outcomes


def test_an_endpoint_that_names_no_vm_is_recorded_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    with answering(an_answer(b"no", "404 Not Found")) as service:
        program = [sys.executable, "-u", "-m", "forewarned", "record", service.address]
        with subprocess.Popen(
            [*program, "--to", str(path)],
            env=PLAIN,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            lines = [next(running.stdout) for _ in range(2)]
            why = next(running.stderr)
            running.terminate()

    assert why == ("the endpoint does not say which VM this is, so the recording won't either\n")
    assert lines[0] == f"recording http://{service.address}; stop with Ctrl-C\n"
    assert lines[1].endswith(" 404 no\n")
    assert running.returncode == 0
    assert decode(path.read_bytes()).vm == ""


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("http://[", "--to", "x"), 2, "is not an endpoint"),
        (("127.0.0.1:1", "--to", "x", "--every", "50ms"), 2, "at most five times a second"),
        (("127.0.0.1:1", "--to", "x", "--every", "soon"), 2, "is not a duration"),
        (("127.0.0.1:1", "--to", "/dev/null/x"), 1, "can't write /dev/null/x"),
        (("127.0.0.1:1", "--to", "notes.txt"), 1, "line 1 can't be read"),
        (("--to", "x"), 3, "FOREWARNED_ENDPOINT"),
    ],
)
def test_what_cant_be_done_is_said(
    words: tuple[str, ...],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("no recording\n")

    done = invoke("record", *words, FOREWARNED_ENDPOINT="nowhere at all")

    assert done.exit_code == code, done.output
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"DocumentIncarnation":1,"Events":[]}', "200 incarnation 1: no events"),
        (
            '{"DocumentIncarnation":2,"Events":[{"EventType":"A","EventStatus":"B"},{"Resources":["c"]}]}',
            "200 incarnation 2: A B; c",
        ),
        ("", "200 (empty)"),
        ("[1]", "200 [1]"),
        ('{"DocumentIncarnation":2,"Events":[1]}', "200 {"),
        ("\x1b[31m", "200 \ufffd[31m"),
    ],
)
def test_an_answer_is_told_in_a_line(body: str, words: str) -> None:
    line = told(Answered(at=NOON, status=200, body=body))

    assert line.startswith(f"2026-01-01 12:00:00 {words}")


def test_no_answer_is_told_with_its_reason() -> None:
    assert told(Unanswered(at=NOON, loss="broken", reason="it broke")).endswith(": it broke")


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("unreached", "it can't be reached"),
        ("timed_out", "it did not answer in time"),
        ("broken", "it broke the connection"),
        ("oversized", "it sent too much"),
        ("of-a-later-version", "of-a-later-version"),
    ],
)
def test_no_answer_is_told_in_words_where_the_recording_has_no_reason(
    loss: str, words: str
) -> None:
    assert told(Unanswered(at=NOON, loss=loss)).endswith(f" no answer: {words}")
