"""What will happen, and when, in sentences. Pure: made from what a rehearsal has brought."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.console.actions import Caused, SetAction
from forewarned.console.names import first_of
from forewarned.console.rendering import ahead, instant
from forewarned.core.model import Event, EventStatus, EventType, StartCause
from forewarned.service.azure.inventory import ScaleSetView
from forewarned.service.records import EventRecord

_MOST_NAMES: Final = 8
_HELD: Final = " It is already approved, but is waiting for others."


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedEvent:
    type: EventType
    resources: str
    scope: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """All that is told before a form is sent."""

    changes: tuple[str, ...]
    """What is otherwise at once, without an event."""
    events: tuple[PreviewedEvent, ...]
    fingerprint: str
    """The same for the same outcome, whenever it is made: a form that has it was sent after this
    preview was shown."""

    @property
    def groups(self) -> list[tuple[str, list[PreviewedEvent]]]:
        """Events by their sentence, which is said once."""
        found: dict[str, list[PreviewedEvent]] = {}
        for event in self.events:
            found.setdefault(event.sentence, []).append(event)
        return list(found.items())


def preview_of(caused: Caused, *, now: datetime, given: object = ()) -> Preview:
    """`given` is what else the fingerprint stands for, such as what was typed."""
    records = caused.events if isinstance(caused, SetAction) else caused
    outcome = sorted((r.scope_id, r.event.type, r.event.resources) for r in records)
    return Preview(
        fingerprint=hashlib.sha256(repr((given, outcome)).encode()).hexdigest()[:16],
        changes=tuple(_changes(caused)) if isinstance(caused, SetAction) else (),
        events=tuple(
            PreviewedEvent(
                type=record.event.type,
                resources=_names(record.event.resources),
                scope=record.scope_id,
                sentence=_sentence(record.event, now, siblings=_siblings(record, records)),
            )
            for record in records
        ),
    )


# --- events --------------------------------------------------------------------------------------


def _siblings(record: EventRecord, records: Sequence[EventRecord]) -> int:
    """How many other events of the same maintenance of a host there are."""
    work = record.event.maintenance
    return 0 if work is None else sum(each.event.maintenance == work for each in records) - 1


def _sentence(event: Event, now: datetime, *, siblings: int) -> str:
    if event.status is EventStatus.CANCELED:
        return (
            "It is canceled at once and leaves the document, which tells its VMs that it will not"
            " happen."
        )
    if event.status is EventStatus.SCHEDULED and event.not_before is not None:
        told = (
            "The VMs of its scope see it now."
            if event.announced
            else "No VM reads this scope's document, so none sees it."
        )
        left = format_duration(ahead(event.not_before, now))
        held = "" if event.approval is None else _HELD
        condition, otherwise = "when one of them approves it", "if none does"
        if siblings:
            others = f"{siblings} other event{'s' if siblings > 1 else ''} of this maintenance"
            condition = f"together with {others}, when each of them is approved"
            otherwise = "at the latest"
        return (
            f"{told} It starts {condition}, and at {instant(event.not_before)} (in {left})"
            f" {otherwise}.{held}"
        )
    match event.start_cause:
        case StartCause.INACTIVE:
            return (
                "It happens at once and without notice: no VM reads this scope's document, or the"
                " VM's model asks for none."
            )
        case StartCause.HOST_FAILURE:
            return "It has already started when the VMs see it: a failed host gives no notice."
        case StartCause.POLICY:
            return "It starts at once: the scope's policy approves such events."
        case _:
            return "It starts at once."


# --- scale sets ----------------------------------------------------------------------------------


def _changes(action: SetAction) -> Iterator[str]:
    before, after = action.before, action.after
    known = {} if before is None else _latest_by_name(before)
    now = _latest_by_name(after)
    made = [name for name in now if name not in known]
    brought = [name for name, is_latest in known.items() if now.get(name) and not is_latest]
    is_new_model = before is None or before.revision != after.revision
    if action.made_group:
        yield f"The resource group {action.made_group} is created at once."
    if before is None:
        yield f"The set is created at once, {_with(made)}."
    elif made:
        yield f"{_counted(made)} created at once: {_names(made)}."
    if before is not None and is_new_model:
        yield "The set's model changes at once."
    if is_new_model and not all(now.values()):
        yield "Existing instances keep theirs until you upgrade them to the latest."
    if brought:
        yield f"{_counted(brought)} upgraded to the latest model at once: {_names(brought)}."
    if is_new_model or brought:
        yield _of_termination(action.terminate_notice)
    elif not made and not action.events:
        yield "Nothing changes: the set already matches."


def _latest_by_name(view: ScaleSetView) -> dict[str, bool]:
    """Its instances, and whether each is on the latest model."""
    return {vm.name: view.is_latest(vm) for vm in view.vms}


def _of_termination(notice: timedelta | None) -> str:
    if notice is None:
        return "An instance of this model that is deleted later gets no notice."
    return (
        "An instance of this model that is deleted later gets a Terminate event and"
        f" {format_duration(notice)} to prepare, if a VM of its scope reads the document by then."
    )


def _with(names: Sequence[str]) -> str:
    if not names:
        return "without instances"
    return f"with {len(names)} instance{'s' if len(names) != 1 else ''}: {_names(names)}"


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} instance{' is' if len(names) == 1 else 's are'}"


def _names(names: Sequence[str]) -> str:
    return first_of(names, _MOST_NAMES)
