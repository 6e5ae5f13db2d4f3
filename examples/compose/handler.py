"""The handler from the README, which compose.yaml runs next to an emulator."""

from forewarned.client import ChangeKind, ScheduledEvents

with ScheduledEvents() as scheduled:
    for change in scheduled.watch(only_mine=True):
        if change.kind is ChangeKind.APPEARED:
            print(f"draining before {change.event.type}", flush=True)
            scheduled.approve(change.event)
        elif change.kind is ChangeKind.GONE:
            print(f"resuming after {change.event.type} {change.ending}", flush=True)
