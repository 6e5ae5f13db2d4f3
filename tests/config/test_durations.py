from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.config.durations import InvalidDurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14m59s", timedelta(minutes=14, seconds=59)),
        ("15m", timedelta(minutes=15)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("90s", timedelta(seconds=90)),
        ("7d", timedelta(days=7)),
        ("500ms", timedelta(milliseconds=500)),
        ("1m500ms", timedelta(minutes=1, milliseconds=500)),
        ("1.5s", timedelta(seconds=1.5)),
        ("0", timedelta(0)),
        ("0s", timedelta(0)),
        ("PT5M", timedelta(minutes=5)),
        ("PT1H30M", timedelta(hours=1, minutes=30)),
        ("P7D", timedelta(days=7)),
        ("P1DT0.25S", timedelta(days=1, milliseconds=250)),
    ],
)
def test_a_duration_is_read_in_either_notation(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "15",
        "15 m",
        "-5m",
        "5m1h",
        "5x",
        "P",
        "PT",
        "P1M",
        "PT5m",
        "1.5h",
        "٥m",
        "9" * 12 + "d",
        "1s" * 40,
    ],
)
def test_anything_else_is_refused_with_an_example_of_what_is_meant(text: str) -> None:
    with pytest.raises(InvalidDurationError, match="write it like 90s, 14m59s, 7d or PT5M"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(minutes=14, seconds=59), "14m59s"),
        (timedelta(hours=24), "1d"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(milliseconds=500), "500ms"),
        (timedelta(0), "0s"),
        (timedelta(seconds=-61), "-1m1s"),
    ],
)
def test_a_duration_is_written_in_its_largest_units(duration: timedelta, expected: str) -> None:
    assert format_duration(duration) == expected


@given(st.timedeltas(min_value=timedelta(0)))
def test_what_is_written_is_read_back_unchanged(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
