"""Scheduled events as Azure's Event Grid sends them, to webhooks that take Event Grid's schema.

https://learn.microsoft.com/azure/virtual-machines/scheduled-events-event-grid (as of 2026-05)
"""

import json
import re
from datetime import datetime
from typing import Any, Final

from forewarned.service.events.api_versions import event_fields, event_version
from forewarned.service.subscriptions.content import instant
from forewarned.service.subscriptions.model import Message

EVENT_TYPE: Final = "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted"
VALIDATION_TYPE: Final = "Microsoft.EventGrid.SubscriptionValidationEvent"
# Of the schema, as Azure's page shows them.
_API_VERSION: Final = "2024-07-01"
_DATA_VERSION: Final = "3.0"
_METADATA_VERSION: Final = "1"
_SUBSCRIPTION: Final = re.compile(r"/subscriptions/[^/]+", re.IGNORECASE)


def notification(message: Message, *, subscription: str) -> tuple[dict[str, str], bytes]:
    """Headers and body. Azure delivers arrays of one."""
    headers = _headers("Notification", subscription, data_version=_DATA_VERSION)
    return headers, _json([event(message)])


def validation(code: str, *, subscription: str, at: datetime) -> tuple[dict[str, str], bytes]:
    """What a webhook must answer with `validationResponse`, before it is sent anything else."""
    asked = {
        "id": code,
        "topic": "",
        "subject": "",
        "data": {"validationCode": code},
        "eventType": VALIDATION_TYPE,
        "eventTime": instant(at),
        "metadataVersion": _METADATA_VERSION,
        "dataVersion": "2",
    }
    return _headers("SubscriptionValidation", subscription, data_version="2"), _json([asked])


# Any, here and below: what JSON is made of.
def event(message: Message) -> dict[str, Any]:
    version = event_version(message.publishing.api_version)
    event_id = message.event.id.lower()
    resource = f"{message.resource_id}/providers/microsoft.maintenance/scheduledevents/{event_id}"
    found = _SUBSCRIPTION.match(message.resource_id)
    return {
        "id": message.id,
        "topic": "" if found is None else found[0],
        "subject": resource,
        "data": {
            "resourceInfo": {
                "id": resource,
                "name": event_id,
                "type": "microsoft.maintenance/scheduledEvents",
                "location": message.location,
                "properties": {
                    **event_fields(message.event, version),
                    "ScheduledEventApiVersion": version.name,
                },
            },
            "operationalInfo": {"resourceEventTime": instant(message.at)},
            "apiVersion": _API_VERSION,
        },
        "eventType": EVENT_TYPE,
        "eventTime": instant(message.at),
        "dataVersion": _DATA_VERSION,
        "metadataVersion": _METADATA_VERSION,
    }


def _headers(kind: str, subscription: str, *, data_version: str) -> dict[str, str]:
    return {
        "Content-Type": "application/json; charset=utf-8",
        # What Azure Functions and logic apps tell the two by.
        "aeg-event-type": kind,
        "aeg-subscription-name": subscription.upper(),
        "aeg-metadata-version": _METADATA_VERSION,
        "aeg-data-version": data_version,
    }


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
