"""Event Grid's schema, as Azure's own package reads it, and the fields that Azure documents."""

import json
from datetime import timedelta
from email.utils import format_datetime

import pytest
from azure.eventgrid import EventGridEvent, SystemEventNames

from forewarned.core.model import EventSource, EventStatus, EventType, Publishing
from forewarned.publishing.shapes import event_grid
from forewarned.service.subscriptions.content import instant
from forewarned.service.subscriptions.model import Message, PublishedStatus
from tests.builders import NOON, A, an_event
from tests.service.subscriptions.messages import a_message

SET = (
    "/subscriptions/7d8d2f3a-0000-4000-8000-000000000001/resourceGroups/rg"
    "/providers/Microsoft.Compute/virtualMachineScaleSets/web"
)


def a_grid_message(
    status: PublishedStatus = PublishedStatus.SCHEDULED, *, api_version: str = ""
) -> Message:
    event = an_event(
        type=EventType.REBOOT,
        status=EventStatus(status.value),
        source=EventSource.USER,
        resources=["web_0", "web_1"],
        not_before=NOON if status is PublishedStatus.SCHEDULED else None,
        duration=timedelta(seconds=9),
        description="Virtual machine is going to be restarted as requested by authorized user.",
    )
    message = a_message(
        status, event=event, publishing=Publishing(enabled=True, api_version=api_version)
    )
    return message._replace(resource_id=SET, location="westeurope")


def parsed(message: Message) -> EventGridEvent:
    _, body = event_grid.notification(message, subscription="ops")
    (event,) = json.loads(body)
    found: EventGridEvent = EventGridEvent.from_json(json.dumps(event))
    return found


@pytest.mark.parametrize("status", ["Scheduled", "Started", "Completed", "Canceled"])
def test_azures_package_deserialises_it_with_the_documented_fields(status: str) -> None:
    message = a_grid_message(PublishedStatus(status))

    event = parsed(message)

    subject = f"{SET}/providers/microsoft.maintenance/scheduledevents/{A.lower()}"
    assert event.id == message.id
    assert event.event_type == (
        "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted"
    )
    assert event.topic == "/subscriptions/7d8d2f3a-0000-4000-8000-000000000001"
    assert event.subject == subject
    assert event.event_time == NOON
    assert event.data_version == "3.0"
    assert event.metadata_version == "1"
    assert event.data == {
        "resourceInfo": {
            "id": subject,
            "name": A.lower(),
            "type": "microsoft.maintenance/scheduledEvents",
            "location": "westeurope",
            "properties": {
                "EventId": A,
                "EventStatus": status,
                "EventType": "Reboot",
                "ResourceType": "VirtualMachine",
                "Resources": ["web_0", "web_1"],
                "NotBefore": format_datetime(NOON, usegmt=True) if status == "Scheduled" else "",
                "Description": "Virtual machine is going to be restarted as requested by authorized user.",
                "EventSource": "User",
                "DurationInSeconds": 9,
                "ScheduledEventApiVersion": "2020-07-01",
            },
        },
        "operationalInfo": {"resourceEventTime": instant(NOON)},
        "apiVersion": "2024-07-01",
    }


def test_azures_package_has_no_typed_class_for_these_events_yet() -> None:
    """If this fails, the test above should take that class."""
    names = {name.value for name in SystemEventNames}

    assert event_grid.EVENT_TYPE not in names
    assert event_grid.VALIDATION_TYPE in names


def test_the_policy_of_the_scope_decides_which_fields_there_are() -> None:
    fields = parsed(a_grid_message(api_version="2017-08-01")).data["resourceInfo"]["properties"]
    unknown = parsed(a_grid_message(api_version="2031-01-01")).data["resourceInfo"]["properties"]

    assert [*fields] == [
        "EventId",
        "EventStatus",
        "EventType",
        "ResourceType",
        "Resources",
        "NotBefore",
        "ScheduledEventApiVersion",
    ]
    assert fields["ScheduledEventApiVersion"] == "2017-08-01"
    assert unknown["ScheduledEventApiVersion"] == "2020-07-01"


def test_azures_package_deserialises_the_validation_event() -> None:
    headers, body = event_grid.validation("c0de", subscription="ops", at=NOON)

    (event,) = json.loads(body)
    asked: EventGridEvent = EventGridEvent.from_json(json.dumps(event))

    assert asked.event_type == SystemEventNames.EventGridSubscriptionValidationEventName
    assert asked.data == {"validationCode": "c0de"}
    assert headers["aeg-event-type"] == "SubscriptionValidation"
    assert headers["aeg-subscription-name"] == "OPS"


def test_the_headers_tell_notifications_from_validations() -> None:
    headers, _ = event_grid.notification(a_grid_message(), subscription="ops")

    assert headers["aeg-event-type"] == "Notification"
    assert headers["Content-Type"] == "application/json; charset=utf-8"
