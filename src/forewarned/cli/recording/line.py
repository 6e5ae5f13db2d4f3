"""A line of a recording, as people read it. Pure."""

import json

from forewarned.cli.wording import instant, plain
from forewarned.recordings.form import Answered, Outcome


def told(outcome: Outcome) -> str:
    """`2026-11-17 09:30:00 200 incarnation 3: Reboot Scheduled web_0`"""
    if not isinstance(outcome, Answered):
        return f"{instant(outcome.at)} no answer: {plain(outcome.reason or outcome.loss)}"
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
