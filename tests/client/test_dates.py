"""Every published form of a date is read, and nothing else."""

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.client._dates import parse_date

MOMENT = datetime(2016, 9, 19, 18, 29, 47, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 19 Sep 2016 18:29:47 GMT",
        "Fri, 19 Sep 2016 18:29:47 GMT",  # not a Friday
        "19 Sep 2016 18:29:47 UT",
        "Mon, 19 Sep 2016 20:29:47 +0200",
        "19 Sep 16 13:29:47 EST",
        "Mon, 19 Sep 2016 18:29:47 Z",
        "Monday, 19-Sep-16 18:29:47 GMT",
        "Mon Sep 19 18:29:47 2016",
        "Mon Sep 19 18:29:47 UTC 2016",
        "2016-09-19T18:29:47Z",
        "2016-09-19T18:29:47+00:00",
        "2016-09-19T14:29:47-04:00",
        "2016-09-19T18:29:47.0000000Z",
        "2016-09-19 18:29:47",
        "  2016-09-19t18:29:47z ",
        "Mon, 19 Sep 2016 20:29:47 +02:00",
        "Mon, 19 Sep 2016 20:29:47+02:00",
        "Mon, 19 Sep 2016 18:29:47GMT",
        "Monday 19 September 2016 18:29:47 gmt",
        "19 Sept 2016 18:29:47 XYZ",  # an unknown zone
        "Mon Sep 19 20:29:47 +02:00 2016",
        "2016-09-19T18:29:47 UTC",
        "2016-09-19 18:29:47 GMT",
        "2016-09-19 13:29:47 EST",
        "2016-09-19T20:29:47 +0200",
        "2016-09-19T20:29:47+02",
    ],
)
def test_every_form_is_the_same_moment(text: str) -> None:
    assert parse_date(text) == MOMENT


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Sun, 06 Nov 1994 08:49 GMT", datetime(1994, 11, 6, 8, 49, tzinfo=UTC)),
        ("Sun Nov  6 08:49:37 1994", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("19 Sep 68 18:29:47 GMT", datetime(1968, 9, 19, 18, 29, 47, tzinfo=UTC)),
        ("19 Sep 49 18:29:47 GMT", datetime(2049, 9, 19, 18, 29, 47, tzinfo=UTC)),
        # .NET's smallest date
        ("Mon, 01 Jan 0001 00:00:00 GMT", datetime(1, 1, 1, tzinfo=UTC)),
        ("2016-09-19T8:29:47Z", datetime(2016, 9, 19, 8, 29, 47, tzinfo=UTC)),
        ("Mon, 19 Sep 2016 18:29:47.123 GMT", MOMENT.replace(microsecond=123_000)),
        ("Mon Sep 19 18:29:47.1234567 2016", MOMENT.replace(microsecond=123_456)),
        ("2016-09-19T18:29:47,5 UTC", MOMENT.replace(microsecond=500_000)),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2024-02-29T00:00:00.5Z", datetime(2024, 2, 29, microsecond=500_000, tzinfo=UTC)),
    ],
)
def test_odd_moments_are_read(text: str, moment: datetime) -> None:
    assert parse_date(text) == moment


@pytest.mark.parametrize(
    "text",
    ["", "soon", "Mon, 31 Feb 2016 18:29:47 GMT", "Mon, 19 Sex 2016 18:29:47 GMT", "1474309787",
     "2016-09-19", "0001-01-01T00:00:00+14:00", "2016-09-19T18:29:47Z" + " " * 40 + "x",
     "2016-09-19T25:00:00Z", "2016-09-19T18:29:47+99:99"],
)  # fmt: skip
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_date(text) is None


@given(
    st.datetimes(min_value=datetime(1950, 1, 1), max_value=datetime(2049, 1, 1)),  # noqa: DTZ001
    st.integers(-14 * 60, 14 * 60),
)
def test_what_others_write_is_read_back(moment: datetime, minutes: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    assert parse_date(aware.isoformat()) == aware
    assert parse_date(format_datetime(aware)) == aware.replace(microsecond=0)


@given(st.text(max_size=80))
def test_no_text_is_too_odd(text: str) -> None:
    found = parse_date(text)

    assert found is None or found.tzinfo is UTC
