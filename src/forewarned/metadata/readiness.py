"""The JSON of the readiness endpoint, which is ours and not Azure's. Pure."""

from collections.abc import Iterable

import msgspec

from forewarned.core.ids import EventId
from forewarned.service.readiness import ReadinessReport, Standing


def answer(event_id: EventId, reports: Iterable[ReadinessReport]) -> bytes:
    """By standing, and there by name of the VM: when its agent was last heard, in real time."""
    heard: dict[str, dict[str, str]] = {standing.value: {} for standing in Standing}
    for report in reports:
        instant = report.heard_at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        heard[report.standing][report.resource] = instant
    return msgspec.json.encode({"event": event_id, **heard})
