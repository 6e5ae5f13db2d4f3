"""Approval of events from outside their VMs, as Microsoft.Maintenance has it.

What is approved there is what VMs approve in their own documents; either counts the same.
"""

from collections.abc import Mapping
from typing import Final

from forewarned.control.arm.answers import ArmAnswer, multi_status, ok
from forewarned.control.arm.errors import bad_request, code_of, error_body, not_found
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import GROUP, Operation, post
from forewarned.core.errors import InvalidIdError, RefusalError, UnknownEventError
from forewarned.core.ids import EventId, parse_event_id
from forewarned.security.identities import Role
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import COMPUTE
from forewarned.service.events import acknowledgement
from forewarned.service.ports import Transaction

MOST_IDS: Final = 100
"""Of one request, as for VMs."""

_APPROVED: Final = "Successfully Approved"
_UNKNOWN: Final = "Scheduled event not found"


def acknowledge(tx: Transaction, asked: Asked) -> ArmAnswer:
    text = asked.path["event"]
    refusal = _acknowledged(tx, asked, [text])[text]
    if isinstance(refusal, UnknownEventError):
        raise not_found("NotFound", _UNKNOWN)
    if refusal is not None:
        raise refusal
    return ok({"value": _APPROVED})


def acknowledge_list(tx: Transaction, asked: Asked) -> ArmAnswer:
    results = _acknowledged(tx, asked, _listed(asked.body))
    if not any(results.values()):
        return ok({"value": _APPROVED})
    error = error_body("MultiStatusResponse", _summary(results))
    error["details"] = [_detail(text, refusal) for text, refusal in results.items()]
    return multi_status({"error": error})


def _summary(results: Mapping[str, RefusalError | None]) -> str:
    refused = sum(refusal is not None for refusal in results.values())
    if refused == len(results):
        return "None of the scheduled events was approved: see details."
    return (
        f"Not approved: {refused} of {len(results)} scheduled events, see details. The others were"
        " approved."
    )


def _acknowledged(
    tx: Transaction, asked: Asked, texts: list[str]
) -> dict[str, RefusalError | None]:
    """The refusal of each approval, by the id as it was given; None for an approved one."""
    id_ = asked.id_of(f"{COMPUTE}/{asked.path['type']}", asked.path["name"])
    given = {text: _event_id(text) for text in texts}
    wanted = [event_id for event_id in given.values() if event_id is not None]
    results = acknowledgement.acknowledge(tx, id_, wanted, rules=asked.context.rules, by=asked.by)
    return {
        text: UnknownEventError(EventId(text)) if event_id is None else results[event_id]
        for text, event_id in given.items()
    }


def _event_id(text: str) -> EventId | None:
    try:
        return parse_event_id(text)
    except InvalidIdError:
        return None


def _listed(body: Json | None) -> list[str]:
    ids = (body or {}).get("value")
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise _bad_list("value must be a list of the ids of scheduled events")
    if not ids or len(ids) > MOST_IDS:
        raise _bad_list(f"value must have from 1 to {MOST_IDS} ids, and has {len(ids)}")
    return ids


def _bad_list(why: str) -> Exception:
    return bad_request(
        "InvalidRequestContent", f"The request content was invalid: {why}.", target="value"
    )


def _detail(text: str, refusal: RefusalError | None) -> dict[str, object]:
    target = text[:100]
    if refusal is None:
        return error_body("OK", _APPROVED, target)
    if isinstance(refusal, UnknownEventError):
        return error_body("NotFound", _UNKNOWN, target)
    return error_body(code_of(refusal), str(refusal), target)


_EVENTS: Final = (
    f"{GROUP}/providers/{COMPUTE}/{{type}}/{{name}}/providers/Microsoft.Maintenance/scheduledevents"
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    post(f"{_EVENTS}/{{event}}/acknowledge", acknowledge, needs=Role.APPROVER),
    post(_EVENTS, acknowledge_list, needs=Role.APPROVER),
)
