"""Run one command before an interruption of this VM, and another after it.

    python run_around.py ./drain.sh ./resume.sh

The event is approved when the first command succeeds; if it fails, the event starts at its
NotBefore. Both commands find the event in environment variables.
"""

import os
import subprocess
import sys

from forewarned.client import Change, ChangeKind, ScheduledEvents


def run(command: str, change: Change) -> bool:
    event = change.event
    variables = {
        "EVENT_ID": event.event_id,
        "EVENT_TYPE": str(event.type),
        "EVENT_ENDING": str(change.ending or ""),
    }
    return subprocess.run([command], env=os.environ | variables, check=False).returncode == 0


def main(before: str, after: str) -> None:
    with ScheduledEvents() as scheduled:
        for change in scheduled.watch(only_mine=True):
            if change.kind is ChangeKind.APPEARED and run(before, change):
                scheduled.approve(change.event)
            elif change.kind is ChangeKind.GONE:
                run(after, change)


if __name__ == "__main__":
    main(*sys.argv[1:])
