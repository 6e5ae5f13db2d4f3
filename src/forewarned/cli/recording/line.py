"""A line of a recording, as people read it. Pure."""

import json
from collections.abc import Mapping
from typing import Final

from forewarned.cli.wording import instant, plain
from forewarned.recordings.form import Answered, Outcome

_LOSSES: Final[Mapping[str, str]] = {
    "unreached": "it can't be reached",
    "timed_out": "it did not answer in time",
    "broken": "it broke the connection",
    "oversized": "it sent too much",
}
"""What happened, where a recording is anonymous and so does not have the reason."""


def told(outcome: Outcome) -> str:
    """`2026-11-17 09:30:00 200 incarnation 3: Reboot Scheduled web_0`"""
    if not isinstance(outcome, Answered):
        why = outcome.reason or _LOSSES.get(outcome.loss, outcome.loss)
        return f"{instant(outcome.at)} no answer: {plain(why)}"
    return plain(f"{instant(outcome.at)} {outcome.status} {_said(outcome)}")


def _said(answer: Answered) -> str:
    try:
        value = json.loads(answer.content)
        incarnation, events = value["DocumentIncarnation"], value["Events"]
        shown = [_event(event) for event in events]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return answer.body[:100] or "(empty)"
    return f"incarnation {incarnation}: {'; '.join(shown) or 'no events'}"


def _event(event: dict[str, object]) -> str:
    resources = event.get("Resources")
    names = resources if isinstance(resources, list) else [resources]
    words = (event.get("EventType"), event.get("EventStatus"), *names)
    return " ".join(str(word) for word in words if word is not None)
