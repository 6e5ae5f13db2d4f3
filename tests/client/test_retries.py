"""Whether and when a request is sent again, for a single call and for a watch."""

import pytest

from forewarned.client import UnavailableError
from forewarned.client._retries import (
    UPDATING,
    CallRetries,
    Severity,
    TimeUpError,
    Trouble,
    WatchRetries,
    retry_delay,
)

ERROR = UnavailableError("no route")
NEVER_AGAIN = [Severity.SLOW, Severity.REFUSED, Severity.FINAL]


def trouble(severity: Severity = Severity.PASSING, retry_after: float | None = None) -> Trouble:
    return Trouble(error=ERROR, severity=severity, retry_after=retry_after)


def latest() -> float:
    """The jitter of a client that waits for as long as it may."""
    return 1.0


def a_watch(*, timeout: float | None = None, patience: float | None = None) -> WatchRetries:
    return WatchRetries(latest, now=1000.0, timeout=timeout, patience=patience)


# --- a single call -------------------------------------------------------------------------------


def test_a_call_tries_four_times_and_raises_what_went_wrong_last() -> None:
    retrying = CallRetries(latest)

    pauses = [retrying.pause(trouble(), 1000.0) for _ in range(3)]

    assert [(pause.seconds, pause.is_first) for pause in pauses] == [
        (0.5, True),
        (1.0, False),
        (2.0, False),
    ]
    assert {pause.because for pause in pauses} == {ERROR}
    with pytest.raises(UnavailableError) as raised:
        retrying.pause(trouble(), 1000.0)
    assert raised.value is ERROR


def test_a_call_is_troubled_until_it_has_worked_and_then_counts_anew() -> None:
    retrying = CallRetries(latest)
    troubled = [retrying.is_troubled]

    retrying.pause(trouble(), 1000.0)
    troubled.append(retrying.is_troubled)
    retrying.worked(1001.0)
    troubled.append(retrying.is_troubled)

    assert troubled == [False, True, False]
    assert retrying.pause(trouble(), 1002.0).is_first


@pytest.mark.parametrize("severity", NEVER_AGAIN)
def test_a_call_does_not_repeat_what_would_fail_again(severity: Severity) -> None:
    with pytest.raises(UnavailableError):
        CallRetries(latest).pause(trouble(severity), 1000.0)


def test_a_call_waits_seventy_seconds_for_a_service_that_updates_itself() -> None:
    retrying = CallRetries(latest)

    for now in (1000.0, 1030.0, 1069.9):
        retrying.pause(trouble(Severity.UPDATING), now)

    assert UPDATING == 70
    with pytest.raises(UnavailableError):
        retrying.pause(trouble(Severity.UPDATING), 1070.0)


# --- a watch -------------------------------------------------------------------------------------


def test_a_watch_tells_what_troubles_it_until_it_has_worked() -> None:
    retrying = a_watch()
    assert (retrying.is_troubled, retrying.trouble) == (False, None)

    pauses = [retrying.pause(trouble(), 1000.0 + number) for number in range(2)]
    assert [(pause.seconds, pause.is_first) for pause in pauses] == [(0.5, True), (1.0, False)]
    assert {pause.because for pause in pauses} == {ERROR}
    assert (retrying.is_troubled, retrying.trouble) == (True, ERROR)
    retrying.worked(1002.0)

    assert (retrying.is_troubled, retrying.trouble) == (False, None)
    assert retrying.pause(trouble(), 1003.0).is_first


def test_a_watch_gives_up_at_once_only_what_is_wrong_in_itself() -> None:
    with pytest.raises(UnavailableError) as raised:
        a_watch().pause(trouble(Severity.FINAL), 1000.0)
    assert raised.value is ERROR

    for severity in (Severity.PASSING, Severity.UPDATING, Severity.SLOW, Severity.REFUSED):
        assert a_watch().pause(trouble(severity), 1000.0).because is ERROR


def test_a_watch_gives_up_an_endpoint_that_refuses_and_has_never_worked() -> None:
    retrying = a_watch()
    retrying.pause(trouble(Severity.REFUSED), 1069.9)

    for severity in (Severity.PASSING, Severity.SLOW):
        retrying.pause(trouble(severity), 1070.0)
    with pytest.raises(UnavailableError):
        retrying.pause(trouble(Severity.REFUSED), 1070.0)


def test_a_watch_never_gives_up_an_endpoint_that_has_worked() -> None:
    retrying = a_watch()
    retrying.worked(1000.0)

    assert retrying.pause(trouble(Severity.REFUSED), 100_000.0).because is ERROR


def test_patience_is_counted_from_when_all_was_well_last() -> None:
    retrying = a_watch(patience=60.0)
    retrying.worked(1010.0)
    retrying.pause(trouble(), 1069.9)

    with pytest.raises(UnavailableError) as raised:
        retrying.pause(trouble(), 1070.0)

    assert str(raised.value) == "scheduled events could not be read for 60 s: no route"
    assert raised.value.__cause__ is ERROR


def test_patience_begins_with_the_watch() -> None:
    retrying = a_watch(patience=60.0)
    retrying.pause(trouble(), 1059.9)

    with pytest.raises(UnavailableError):
        retrying.pause(trouble(), 1060.0)


def test_no_pause_outlasts_a_watch() -> None:
    retrying = a_watch(timeout=10.0)

    assert retrying.remaining(1002.5) == 7.5
    assert retrying.rest(60.0, 1002.5).seconds == 7.5
    assert retrying.rest(5.0, 1002.5).seconds == 5
    assert retrying.rest(5.0, 1002.5).because is None
    assert retrying.pause(trouble(retry_after=60.0), 1002.5).seconds == 7.5
    assert retrying.pause(trouble(), 1002.5).seconds == 1


def test_a_watch_without_an_end_rests_for_as_long_as_it_is_asked_to() -> None:
    retrying = a_watch()

    assert retrying.remaining(100_000.0) is None
    assert retrying.rest(60.0, 100_000.0).seconds == 60


def test_a_watch_is_over_at_its_end_whatever_comes_next() -> None:
    retrying = a_watch(timeout=10.0)

    with pytest.raises(TimeUpError):
        retrying.remaining(1010.0)
    with pytest.raises(TimeUpError):
        retrying.rest(1.0, 1010.0)
    with pytest.raises(TimeUpError):
        retrying.pause(trouble(), 1010.0)


# --- how long to wait ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "jitter", "seconds"),
    [(1, 0.0, 0.25), (1, 0.5, 0.375), (1, 1.0, 0.5), (5, 1.0, 8), (6, 1.0, 10), (9999, 0.0, 5)],
)
def test_pauses_double_up_to_ten_seconds_and_are_spread_over_their_second_half(
    failures: int, jitter: float, seconds: float
) -> None:
    assert retry_delay(failures, None, lambda: jitter) == seconds


@pytest.mark.parametrize(("wanted", "seconds"), [(0.1, 0.5), (30, 30), (60, 60), (61, 60)])
def test_the_service_is_given_the_time_it_wants_up_to_a_minute(
    wanted: float, seconds: float
) -> None:
    assert retry_delay(1, wanted, latest) == seconds
