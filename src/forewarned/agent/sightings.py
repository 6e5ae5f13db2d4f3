"""Events of the SDK as the agent speaks of them."""

from forewarned.agent.model import Sighting
from forewarned.client import Event


def sighting_of(event: Event) -> Sighting:
    return Sighting(
        event_id=event.event_id,
        type=str(event.type),
        source="" if event.source is None else str(event.source),
        resources=event.resources,
        not_before=event.not_before,
        duration=event.duration,
        description=event.description,
        is_started=event.is_started,
    )
