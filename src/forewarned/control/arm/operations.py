"""How far long-running operations are, as clients ask while they wait.

The same operation is shown at two places: as a document that always answers 200, and at the
Location of the first answer, which is 202 until there is nothing left to wait for.
"""

from typing import Final

from forewarned.control.arm.answers import ArmAnswer, finished, in_progress, ok, still_running
from forewarned.control.arm.errors import conflict, error_body, not_found
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import AT_LOCATION, GROUP, Operation, read
from forewarned.service.azure import operations
from forewarned.service.azure.operations import OperationStatus, Progress
from forewarned.service.azure.resource_ids import group_path, subscription_path
from forewarned.service.ports import Snapshot


def show(snapshot: Snapshot, asked: Asked) -> ArmAnswer:
    """Of the subscription, or of the resource group that the path names; no other is found."""
    subscription, operation_id = asked.path["subscription"], asked.path["operation"]
    group = asked.path.get("group")
    place = subscription_path(subscription) if group is None else group_path(subscription, group)
    progress = operations.progress(snapshot, operation_id)
    if progress is None or not _is_at(progress.record.path, place):
        raise not_found(
            "NotFound",
            f"The operation '{operation_id[:100]}' could not be found.",
        )
    if asked.is_set("monitor"):
        return _monitored(progress, asked)
    document = status_document(progress)
    is_over = progress.status is not OperationStatus.IN_PROGRESS
    return ok(document) if is_over else in_progress(document)


def _is_at(path: str, place: str) -> bool:
    return f"{path}/".casefold().startswith(f"{place}/".casefold())


def status_document(progress: Progress) -> dict[str, object]:
    document: dict[str, object] = {
        "startTime": progress.record.started_at.isoformat(),
        "status": progress.status,
        "name": progress.record.id,
    }
    if progress.ended_at is not None:
        document["endTime"] = progress.ended_at.isoformat()
    if progress.status in _UNDONE:
        document["error"] = error_body(_code(progress), progress.reason)
    return document


_UNDONE: Final = frozenset({OperationStatus.FAILED, OperationStatus.CANCELED})


def _monitored(progress: Progress, asked: Asked) -> ArmAnswer:
    if progress.status is OperationStatus.IN_PROGRESS:
        return still_running(progress.record.id, asked)
    if progress.status in _UNDONE:
        raise conflict(_code(progress), progress.reason)
    return finished()


def _code(progress: Progress) -> str:
    if progress.status is OperationStatus.CANCELED:
        return "OperationCanceled"
    return progress.record.failure_code


OPERATIONS: Final[tuple[Operation, ...]] = (
    read(f"{AT_LOCATION}/operations/{{operation}}", show),
    read(
        f"{GROUP}/providers/Microsoft.Resources/deployments/{{deployment}}"
        "/operationStatuses/{operation}",
        show,
    ),
)
