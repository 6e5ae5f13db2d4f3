import pytest

from forewarned.core import descriptions
from forewarned.core.model import EventSource, EventType

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
