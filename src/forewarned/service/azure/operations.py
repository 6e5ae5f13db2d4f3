"""The progress of operations that clients wait for.

An operation is over when the events it caused are: nothing has to remember to end it, so it can't
be left hanging by a crash.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from forewarned.core.ids import EventId
from forewarned.core.model import EventStatus
from forewarned.service.azure.context import AzureContext
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import OperationRecord


class OperationStatus(StrEnum):
    IN_PROGRESS = "InProgress"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELED = "Canceled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    record: OperationRecord
    status: OperationStatus
    ended_at: datetime | None = None
    reason: str = ""
    """Why it failed or was canceled."""


def open_(
    tx: Transaction,
    path: str,
    action: str,
    event_ids: tuple[EventId, ...],
    *,
    context: AzureContext,
) -> OperationRecord:
    record = OperationRecord(
        id=context.ids.operation(path, action),
        path=path,
        action=action,
        started_at=tx.now,
        event_ids=event_ids,
    )
    tx.open_operation(record)
    return record


def progress(snapshot: Snapshot, operation_id: str) -> Progress | None:
    record = snapshot.operation(operation_id)
    if record is None:
        return None
    if record.failure_code:
        return Progress(
            record=record,
            status=OperationStatus.FAILED,
            ended_at=record.started_at,
            reason=record.failure,
        )
    found = [snapshot.event(event_id) for event_id in record.event_ids]
    events = [each for each in found if each is not None]
    ends = [each.ended_at for each in events if each.ended_at is not None]
    if len(ends) < len(events):
        return Progress(record=record, status=OperationStatus.IN_PROGRESS)
    ended_at = max(ends, default=record.started_at)
    for each in events:
        if each.event.status is EventStatus.CANCELED:
            return Progress(
                record=record,
                status=OperationStatus.CANCELED,
                ended_at=ended_at,
                reason=each.end_reason or f"event {each.event.id} was canceled",
            )
    return Progress(record=record, status=OperationStatus.SUCCEEDED, ended_at=ended_at)
