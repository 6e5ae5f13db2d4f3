from datetime import timedelta

import pytest

from forewarned.cli import wording
from tests.cli.answers import DAY, HOUR, MINUTE, NOON, SECOND, an_approval, an_event


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (14 * MINUTE + 59.6 * SECOND, "14m59s"),
        (0.4 * SECOND, "0s"),
        (HOUR + 59 * SECOND, "1h"),
        (23 * HOUR + 59 * MINUTE + 59 * SECOND, "23h59m"),
        (6 * DAY + 23 * HOUR + 5 * MINUTE, "6d23h"),
    ],
)
def test_a_span_shows_its_two_largest_units(length: timedelta, shown: str) -> None:
    assert wording.span(length) == shown


def test_time_left_is_counted_by_the_clock_it_is_given() -> None:
    assert wording.ahead(NOON, NOON - 15 * MINUTE) == "in 15m"
    assert wording.ahead(NOON, NOON) == "due"


def test_time_gone_by_is_never_negative() -> None:
    assert wording.ago(NOON + SECOND, NOON) == "0s ago"


def test_an_event_says_how_far_it_has_come() -> None:
    approved = an_event(approval=an_approval(NOON))
    started = an_event(status="Started", not_before=None, started_at=NOON - 3 * MINUTE)
    ended = an_event(status="Completed", started_at=NOON - HOUR, ended_at=NOON - MINUTE)

    assert wording.stand(an_event(), NOON - MINUTE) == "in 1m"
    assert wording.stand(approved, NOON - MINUTE) == "approved, held"
    assert wording.stand(started, NOON) == "for 3m"
    assert wording.stand(ended, NOON) == "1m ago"


def test_short_ids_are_as_long_as_tells_them_apart() -> None:
    alone = wording.short_ids(["ABCDEF12-3456"])
    alike = wording.short_ids(["ABCDEF12-3456", "ABCDEF12-3999", "ABCDEF12-3456"])

    assert alone == {"ABCDEF12-3456": "ABCDEF12"}
    assert alike == {"ABCDEF12-3456": "ABCDEF12-34", "ABCDEF12-3999": "ABCDEF12-39"}


def test_text_from_elsewhere_can_not_steer_the_terminal() -> None:
    assert wording.plain("\x1b[2Jgone\r\n") == "\ufffd[2Jgone\ufffd\ufffd"
    assert wording.plain("Überwachung – 監視") == "Überwachung – 監視"
