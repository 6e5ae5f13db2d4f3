"""A recording's lines: what is written is read again, and what is broken says where."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.recordings.form import (
    VERSION,
    Answered,
    Began,
    RecordingError,
    Stopped,
    Unanswered,
    decode,
    encode,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEGAN = Began(at=NOON, recording=VERSION, endpoint="http://169.254.169.254", vm="web_0")


# What ends a line somewhere, or means something in JSON; each length in UTF-8, and its limits.
TRICKY = '\n\r\v\f\x00\x1c\x7f\x85\u2028\u2029\ufeff\ufffd"\\/{a€😀\ud7ff\ue000\U0010ffff'


@given(st.text(st.sampled_from(TRICKY)), st.integers(100, 599))
def test_a_body_is_read_as_it_was_written_and_is_one_line(body: str, status: int) -> None:
    answered = Answered(at=NOON, status=status, body=body, headers={"server": "IMDS"})

    written = encode(BEGAN) + encode(answered)

    assert written.count(b"\n") == 2
    assert decode(written).outcomes == (answered,)
    assert decode(written).outcomes[0].content == body.encode()  # type: ignore[union-attr]  # as above


def test_a_body_that_is_no_text_is_kept_all_the_same() -> None:
    answered = Answered(at=NOON, status=200, base64=b"\xff\x00")

    [found] = decode(encode(BEGAN) + encode(answered)).outcomes

    assert isinstance(found, Answered)
    assert found.content == b"\xff\x00"


def test_a_line_that_was_cut_off_is_no_part_of_the_recording() -> None:
    whole = encode(BEGAN) + encode(Unanswered(at=NOON, loss="broken"))

    found = decode(whole + encode(Stopped(at=NOON))[:-3])

    assert found.length == len(whole)
    assert found.outcomes == (Unanswered(at=NOON, loss="broken"),)
    assert found.vm == "web_0"


def test_fields_of_a_later_program_are_ignored() -> None:
    line = encode(Stopped(at=NOON)).replace(b"}", b',"mood":"good"}')

    assert decode(encode(BEGAN) + line).outcomes == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a recording"),
        (b"[[vms]]\nname = 'web'\n", "line 1 can't be read"),
        (encode(Stopped(at=NOON)), "not a recording"),
        (encode(BEGAN) + b'{"entry":"answered"}\n', "line 2 can't be read"),
        (encode(BEGAN) + b"\xff\n", "line 2 can't be read"),
        (encode(BEGAN).replace(b'"recording":1', b'"recording":2'), "use a newer Forewarned"),
        (encode(BEGAN).replace(b"12:00:00Z", b"12:00:00"), "without a UTC offset"),
    ],
)
def test_what_is_no_recording_is_refused_and_a_broken_line_is_named(
    content: bytes, message: str
) -> None:
    with pytest.raises(RecordingError, match=message):
        decode(content)
