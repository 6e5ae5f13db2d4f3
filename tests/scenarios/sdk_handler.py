"""A handler made with the SDK. What it has approved it notes, and it leaves to the first VM."""

import os
from pathlib import Path

from forewarned.client import ChangeKind, ScheduledEvents

STATE = Path(os.environ.get("STATE_DIRECTORY", "."))


def main() -> None:
    with ScheduledEvents() as scheduled:
        name = scheduled.me().name
        for change in scheduled.watch(only_mine=True):
            event = change.event
            note = STATE / event.event_id
            if change.kind is ChangeKind.APPEARED and event.resources[0] == name:
                if not note.exists() and not event.is_started:
                    scheduled.approve(event)
                note.touch()


if __name__ == "__main__":
    main()
