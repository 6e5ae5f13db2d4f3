from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.core import notice
from forewarned.core.errors import (
    NoticeTooLongError,
    NoticeTooShortError,
    ShortNoticeForbiddenError,
)
from forewarned.core.model import EventType
from tests.builders import DAY, MINUTE, NOON, SECOND, a_resource

MICROSECOND = timedelta(microseconds=1)


def agreed(
    type_: EventType,
    asked: timedelta | None = None,
    *,
    short_notice: bool = False,
    short_notice_allowed: bool = True,
    terminate_notice: timedelta | None = None,
) -> timedelta:
    return notice.agree(
        type_,
        [a_resource(terminate_notice=terminate_notice)],
        asked=asked,
        short_notice=short_notice,
        short_notice_allowed=short_notice_allowed,
    )


@pytest.mark.parametrize(
    ("type_", "minimum"),
    [
        (EventType.FREEZE, 15 * MINUTE),
        (EventType.REBOOT, 15 * MINUTE),
        (EventType.REDEPLOY, 10 * MINUTE),
        (EventType.PREEMPT, 30 * SECOND),
        (EventType.TERMINATE, 5 * MINUTE),
    ],
)
def test_each_type_has_a_minimum_notice_and_gets_it_unless_more_is_asked_for(
    type_: EventType, minimum: timedelta
) -> None:
    """I2."""
    assert agreed(type_) == minimum
    assert agreed(type_, minimum) == minimum
    assert agreed(type_, minimum + SECOND) == minimum + SECOND


@pytest.mark.parametrize("type_", EventType)
def test_a_notice_below_the_minimum_is_refused(type_: EventType) -> None:
    """I2."""
    minimum = notice.minimum(type_, [a_resource()])

    with pytest.raises(NoticeTooShortError) as refused:
        agreed(type_, minimum - MICROSECOND)

    assert refused.value.notice == minimum - MICROSECOND
    assert refused.value.minimum == minimum


@pytest.mark.parametrize("minutes", [5, 7, 15])
def test_the_minimum_of_a_terminate_is_in_the_model_of_its_vm(minutes: int) -> None:
    """I2."""
    assert agreed(EventType.TERMINATE, terminate_notice=minutes * MINUTE) == minutes * MINUTE

    with pytest.raises(NoticeTooShortError):
        agreed(
            EventType.TERMINATE,
            minutes * MINUTE - SECOND,
            terminate_notice=minutes * MINUTE,
        )


def test_a_terminate_of_several_vms_gives_each_the_notice_of_its_model() -> None:
    """I2."""
    resources = [
        a_resource("vm1", terminate_notice=5 * MINUTE),
        a_resource("vm2", terminate_notice=12 * MINUTE),
        a_resource("vm3"),
    ]

    assert notice.minimum(EventType.TERMINATE, resources) == 12 * MINUTE


@pytest.mark.parametrize(
    ("type_", "longest"),
    [
        (EventType.FREEZE, 90 * DAY),
        (EventType.REBOOT, 90 * DAY),
        (EventType.REDEPLOY, 90 * DAY),
        (EventType.PREEMPT, 90 * DAY),
        (EventType.TERMINATE, 15 * MINUTE),
    ],
)
def test_a_notice_above_the_maximum_is_refused(type_: EventType, longest: timedelta) -> None:
    assert agreed(type_, longest) == longest

    with pytest.raises(NoticeTooLongError) as refused:
        agreed(type_, longest + MICROSECOND)

    assert refused.value.notice == longest + MICROSECOND
    assert refused.value.maximum == longest


@pytest.mark.parametrize("type_", EventType)
def test_an_emulator_goes_below_the_minimum_when_asked_for_short_notice(type_: EventType) -> None:
    assert agreed(type_, SECOND, short_notice=True) == SECOND
    assert agreed(type_, timedelta(0), short_notice=True) == timedelta(0)


def test_even_short_notice_is_not_negative() -> None:
    with pytest.raises(NoticeTooShortError):
        agreed(EventType.REBOOT, -SECOND, short_notice=True)


def test_short_notice_without_a_notice_is_the_minimum() -> None:
    assert agreed(EventType.REBOOT, short_notice=True) == 15 * MINUTE


@pytest.mark.parametrize("asked", [None, SECOND, 15 * MINUTE])
def test_a_real_service_refuses_short_notice_whatever_was_asked(asked: timedelta | None) -> None:
    """I2."""
    with pytest.raises(ShortNoticeForbiddenError):
        agreed(EventType.REBOOT, asked, short_notice=True, short_notice_allowed=False)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (NOON, NOON + 15 * MINUTE),
        (NOON + MICROSECOND, NOON + 15 * MINUTE + SECOND),
        (NOON + SECOND - MICROSECOND, NOON + 15 * MINUTE + SECOND),
        (
            datetime(2027, 12, 31, 23, 44, 59, 1, tzinfo=UTC),
            datetime(2028, 1, 1, tzinfo=UTC),
        ),
        (
            datetime(2028, 2, 28, 23, 50, 0, 1, tzinfo=UTC),
            datetime(2028, 2, 29, 0, 5, 1, tzinfo=UTC),
        ),
    ],
)
def test_not_before_is_rounded_up_to_the_second(now: datetime, expected: datetime) -> None:
    """I1."""
    assert notice.not_before(now, 15 * MINUTE) == expected


@given(
    st.datetimes(
        min_value=datetime(2000, 1, 1),  # noqa: DTZ001  # the strategy adds the zone itself
        max_value=datetime(2100, 1, 1),  # noqa: DTZ001  # as above
        timezones=st.just(UTC),
    ),
    st.timedeltas(min_value=timedelta(0), max_value=90 * DAY),
)
def test_not_before_is_a_whole_second_and_less_than_one_late(
    now: datetime, lead: timedelta
) -> None:
    """I1, I2."""
    shown = notice.not_before(now, lead)

    assert shown.microsecond == 0
    assert timedelta(0) <= shown - (now + lead) < SECOND
