import pytest

from forewarned.core import descriptions
from forewarned.core.errors import BadDurationError, DescriptionTooLongError, ReasonTooLongError
from forewarned.core.model import EventSource, EventType
from tests.builders import DAY, SECOND

PLATFORM, USER = EventSource.PLATFORM, EventSource.USER
MAINTENANCE = "Host server is undergoing maintenance."


@pytest.mark.parametrize(
    ("type_", "source", "text"),
    [
        (EventType.FREEZE, PLATFORM, MAINTENANCE),
        (EventType.REBOOT, PLATFORM, MAINTENANCE),
        (EventType.REDEPLOY, PLATFORM, MAINTENANCE),
        (EventType.PREEMPT, PLATFORM, ""),
        (EventType.TERMINATE, PLATFORM, ""),
        (EventType.FREEZE, USER, ""),
        (
            EventType.REBOOT,
            USER,
            "Virtual machine is going to be restarted as requested by authorized user.",
        ),
        (
            EventType.REDEPLOY,
            USER,
            "Virtual machine is going to be redeployed as requested by authorized user.",
        ),
        (EventType.PREEMPT, USER, ""),
        (EventType.TERMINATE, USER, ""),
    ],
)
def test_an_event_is_described_in_azures_words(
    type_: EventType, source: EventSource, text: str
) -> None:
    assert descriptions.usual(type_, source) == text


def test_what_breaks_is_described_in_azures_words_too() -> None:
    assert descriptions.HOST_FAILURE == "Virtual machine has encountered a failure."
    assert descriptions.PREDICTED_FAILURE == "Host server is undergoing an emergency repair."


def test_a_description_has_a_thousand_characters_at_most() -> None:
    descriptions.refuse_unfit("x" * 1000, None)

    with pytest.raises(DescriptionTooLongError) as refused:
        descriptions.refuse_unfit("x" * 1001, None)

    assert (refused.value.length, refused.value.longest) == (1001, 1000)


def test_a_reason_has_a_thousand_characters_at_most() -> None:
    descriptions.refuse_long_reason("x" * 1000)

    with pytest.raises(ReasonTooLongError) as refused:
        descriptions.refuse_long_reason("x" * 1001)

    assert (refused.value.length, refused.value.longest) == (1001, 1000)


def test_a_duration_is_from_nothing_to_a_year() -> None:
    for fit in (0 * SECOND, 365 * DAY):
        descriptions.refuse_unfit("", fit)

    for unfit in (-SECOND, 365 * DAY + SECOND):
        with pytest.raises(BadDurationError) as refused:
            descriptions.refuse_unfit("", unfit)
        assert (refused.value.duration, refused.value.longest) == (unfit, 365 * DAY)
