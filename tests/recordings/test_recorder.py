"""A recorder and its file: changes only, on disk at once, and going on after anything."""

import contextlib
import json
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarned.client import Exchange
from forewarned.recordings.file import (
    FullError,
    UnusableFileError,
    anonymity_of,
    appending,
    read_recording,
)
from forewarned.recordings.form import Answered, Unanswered, decode
from forewarned.recordings.recorder import Recorder

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LIMIT = 100_000
EMPTY = b'{"DocumentIncarnation":1,"Events":[]}'
NAMED = b'{"DocumentIncarnation":2,"Events":[{"EventId":"A","Resources":["web_0"]}]}'


def answer(body: bytes = EMPTY, status: int = 200, **headers: str) -> Exchange:
    return Exchange(at=NOON, status=status, headers=headers, body=body)


def lost(loss: str = "broken") -> Exchange:
    return Exchange(at=NOON, status=None, loss=loss, reason="http://10.0.0.4 broke it")


def record(path: Path, *exchanges: Exchange, limit: int = LIMIT) -> None:
    with appending(path, limit=limit, anonymous=False) as file:
        recorder = Recorder(file, None)
        recorder.begin(NOON, endpoint="http://10.0.0.4", api_version="2020-07-01", vm="web_0")
        for second, exchange in enumerate(exchanges):
            recorder.take(replace(exchange, at=NOON + timedelta(seconds=second)))
        recorder.stop(NOON)


def kinds(path: Path) -> list[str]:
    return [json.loads(line)["entry"] for line in path.read_text().splitlines()]


def test_only_what_differs_from_the_answer_before_is_written(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    busy = answer(b"busy", 503)

    record(path, answer(date="noon"), answer(date="later"), busy, busy, lost(), lost(), answer())

    outcomes = read_recording(path).outcomes
    assert [_said(outcome) for outcome in outcomes] == [200, 503, "broken", 200]
    assert kinds(path)[0] == "began"
    assert kinds(path)[-1] == "stopped"
    assert path.stat().st_mode & 0o077 == 0


def _said(outcome: Answered | Unanswered) -> int | str:
    return outcome.status if isinstance(outcome, Answered) else outcome.loss


def test_a_line_is_on_disk_before_the_endpoint_is_read_again(tmp_path: Path) -> None:
    """A recorder is killed with its VM, by the very event that it records."""
    made: list[str] = []

    def note(_: object, event: str, called: object) -> None:
        if event == "c_call" and called in {os.write, os.fsync}:
            made.append("write" if called is os.write else "fsync")

    with appending(tmp_path / "recording", limit=LIMIT, anonymous=False) as file:
        recorder = Recorder(file, None)
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            for exchange in (answer(), answer(), lost()):
                recorder.take(exchange)
        finally:
            sys.setprofile(before)

    assert made == ["write", "fsync", "write", "fsync"]


def test_a_restart_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "recording"

    record(path, answer())
    record(path, answer(), answer(NAMED))

    assert kinds(path) == ["began", "answered", "stopped", "began", "answered", "stopped"]


@pytest.mark.parametrize("kept", range(1, 60, 7))
def test_a_line_that_a_crash_cut_off_is_removed_before_the_next(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "recording"
    record(path, answer())
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[1][:kept])

    record(path, answer(), answer(NAMED))

    assert path.read_bytes().startswith(whole)
    assert [_said(one) for one in decode(path.read_bytes()).outcomes] == [200, 200]


def test_a_first_line_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_bytes(b'{"entry":"began","at"')

    record(path, answer())

    assert kinds(path) == ["began", "answered", "stopped"]


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n")

    with pytest.raises(UnusableFileError, match="line 1 can't be read"):
        record(path, answer())

    assert path.read_text() == "buy milk\n"


def test_two_recorders_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    with (
        appending(path, limit=LIMIT, anonymous=False),
        pytest.raises(UnusableFileError, match="in use by process"),
        appending(path, limit=LIMIT, anonymous=False),
    ):
        pass


def test_a_full_file_ends_with_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "recording"

    with pytest.raises(FullError, match="limit of 600 bytes"):
        record(path, *(answer(b"%d" % number) for number in range(100)), limit=600)

    assert path.stat().st_size <= 600
    assert len(decode(path.read_bytes()).outcomes) > 2


def test_a_line_that_does_not_fit_on_the_disk_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    record(path, answer())
    whole = path.read_bytes()

    with _files_of_at_most(len(whole) + 20), pytest.raises(OSError, match="File too large"):
        record(path, answer(NAMED))

    assert path.read_bytes() == whole


@contextlib.contextmanager
def _files_of_at_most(length: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_anonymous_recording_holds_no_name_and_no_address(tmp_path: Path) -> None:
    path = tmp_path / "recording"

    for _ in range(2):
        with appending(path, limit=LIMIT, anonymous=True) as file:
            recorder = Recorder(file, anonymity_of(path))
            recorder.begin(NOON, endpoint="http://10.0.0.4", api_version="2020-07-01", vm="Web_0")
            recorder.take(lost())
            recorder.take(answer(NAMED))
            recorder.take(answer(NAMED))

    text = path.read_text()
    assert "web_0" not in text.casefold()
    assert "10.0.0.4" not in text
    found = read_recording(path)
    body = json.loads(next(one.body for one in found.outcomes if isinstance(one, Answered)))
    assert body["Events"][0]["Resources"] == [found.vm]
    # The second start has the same key, so that it finds nothing new in the same document.
    assert kinds(path).count("answered") == 2
    assert (tmp_path / "recording.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("was", [True, False])
def test_real_and_anonymous_names_are_not_mixed(tmp_path: Path, *, was: bool) -> None:
    path = tmp_path / "recording"
    with appending(path, limit=LIMIT, anonymous=was) as file:
        recorder = Recorder(file, anonymity_of(path) if was else None)
        recorder.begin(NOON, endpoint="", api_version="2020-07-01", vm="")

    with (
        pytest.raises(UnusableFileError, match="can't be mixed"),
        appending(path, limit=LIMIT, anonymous=not was),
    ):
        pass


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recording.key").write_text("nothing")

    with pytest.raises(UnusableFileError, match="is not a key"):
        anonymity_of(tmp_path / "recording")
