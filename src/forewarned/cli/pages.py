"""What commands print: tables with the sentences around them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from forewarned.cli.tables import event_table, history_table, vm_table
from forewarned.cli.wording import (
    STATUS_STYLES,
    TYPE_STYLES,
    ago,
    ahead,
    count,
    duration,
    instant,
    kind,
    listing,
    plain,
    short_ids,
)
from forewarned.control.v1 import wire
from forewarned.core.transitions import cause_in_words

_API_VERSION = "2020-07-01"
_MOST_SHOWN = 10


def event_page(
    events: Sequence[wire.Event], *, now: datetime, none: str
) -> Iterator[RenderableType]:
    yield event_table(events, now=now) if events else none


def notice_page(events: Iterable[wire.Event], health: wire.Health) -> Iterator[RenderableType]:
    """For events that were not announced: what happens, and how to get notice next time."""
    unseen: dict[str, wire.Event] = {}
    for event in events:
        # A host that fails gives no notice to VMs that read, either.
        if not event.announced and event.start_cause != "host_failure":
            unseen.setdefault(event.scope, event)
    if not unseen:
        return
    yield ""
    is_emulator = health.mode == "emulator"
    done = "carried out" if is_emulator else "started"
    yield Text(
        f"No VM reads the document of {listing(unseen)}, so the work was {done} without notice.",
        "yellow",
    )
    if is_emulator:
        yield "The first read of a document switches notice on:"
    else:
        yield "The first read of a document, by one of its VMs, switches notice on:"
    # In service mode they are all the same: a VM is known by its address.
    for curl in dict.fromkeys(_curl(plain(e.resources[0]), health) for e in unseen.values()):
        yield _command_line(curl)


def _curl(vm: str, health: wire.Health) -> str:
    where = f"{health.metadata}/vm/{vm}" if health.mode == "emulator" else health.metadata
    query = f"/metadata/scheduledevents?api-version={_API_VERSION}"
    return f"curl -H Metadata:true '{where}{query}'"


def _command_line(text: str) -> RenderableType:
    """One line however long, as it is there to be copied; inside a group it stays that."""
    return Group(Text(f"  {text}", no_wrap=True, overflow="ignore"))


def next_steps(events: Iterable[wire.Event]) -> Iterator[RenderableType]:
    waiting = [event for event in events if event.status == "Scheduled" and not event.approval]
    if not waiting:
        return
    first = short_ids(event.event_id for event in waiting)[waiting[0].event_id]
    yield ""
    works = {event.maintenance for event in waiting}
    if len(waiting) > 1 and len(works) == 1 and None not in works:
        yield "They start together, once each of them is approved, or at their NotBefore."
    it = "it" if len(waiting) == 1 else "the first"
    approve, explain = f"To approve {it} before its NotBefore:", f"To see what {it} is waiting for:"
    yield f"{approve}  forewarned approve {first}"
    yield f"{explain:<{len(approve)}}  forewarned explain {first}"


def completion_page(events: Iterable[wire.Event], health: wire.Health) -> Iterator[RenderableType]:
    """For events that have started where only an operator completes them."""
    started = [event.event_id for event in events if event.status == "Started"]
    if not started or health.mode == "emulator":
        return
    yield ""
    yield "If no actuator does the work (see 'forewarned tasks list'), do it, then run:"
    short = short_ids(started)
    yield from _some([f"  forewarned complete {short[event_id]}" for event_id in started], "  ")


def explanation_page(found: wire.Explained) -> Iterator[RenderableType]:
    event = found.event
    yield Text.assemble(
        (event.type, TYPE_STYLES.get(event.type, "")),
        f" {event.event_id} ",
        (event.status, STATUS_STYLES.get(event.status, "")),
    )
    yield facts(_fact_rows(event, found.now))
    yield ""
    yield facts(_reasons(found))
    if found.history:
        yield ""
        yield history_table(found.history)


def _reasons(found: wire.Explained) -> Iterator[tuple[str, str]]:
    yield "why", plain(found.why)
    for number, reason in enumerate(found.waits_for):
        yield "" if number else "waits for", plain(reason)
    for line in _some([f"forewarned explain {other}" for other in found.waits_for_events]):
        yield "", line
    for number, line in enumerate(_some(_siblings(found))):
        yield "" if number else "siblings", line
    yield "next", plain(found.next_step)


def _siblings(found: wire.Explained) -> list[str]:
    short = short_ids(each.event_id for each in found.siblings)
    return [
        f"{short[each.event_id]} {each.type} of {listing(each.resources)} in {plain(each.scope)}:"
        f" {_readiness(each)}"
        for each in found.siblings
    ]


def _readiness(sibling: wire.Sibling) -> str:
    if sibling.status == "Started":
        return "started"
    return "ready" if sibling.ready else "waits for approval"


def _some(lines: Sequence[str], indent: str = "") -> Iterator[str]:
    """A host may have events in a hundred scopes."""
    yield from lines[:_MOST_SHOWN]
    if len(lines) > _MOST_SHOWN:
        yield f"{indent}and {len(lines) - _MOST_SHOWN:,} more"


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True, min_width=13)
    facts.add_column()
    for name, value in rows:
        facts.add_row(f"  {name}", Text(value, overflow="fold"))
    return facts


def _fact_rows(event: wire.Event, now: datetime) -> Iterator[tuple[str, str]]:
    yield "VMs", listing(event.resources)
    yield "scope", plain(event.scope)
    yield "source", event.source
    if event.description:
        yield "description", plain(event.description)
    yield (
        "duration",
        duration(event.duration) or "unknown",
    )
    yield "created", f"{instant(event.created_at)} UTC ({ago(event.created_at, now)})"
    if event.not_before is not None:
        left = "" if event.ended_at is not None else f" ({ahead(event.not_before, now)})"
        yield "NotBefore", f"{instant(event.not_before)} UTC{left}"
    if event.approval is not None:
        by = "the scope's policy" if event.approval.by_policy else plain(event.approval.by)
        yield "approved", f"{instant(event.approval.at)} UTC by {by}"
    if event.started_at is not None:
        cause = f", {cause_in_words('started', event.start_cause)}" if event.start_cause else ""
        yield "started", f"{instant(event.started_at)} UTC ({ago(event.started_at, now)}){cause}"
    if event.ended_at is not None:
        yield "ended", f"{instant(event.ended_at)} UTC ({ago(event.ended_at, now)})"
    if event.end_reason:
        yield "reason", plain(event.end_reason)
    if event.maintenance is not None:
        yield "maintenance", plain(event.maintenance)
    if not event.announced:
        yield "announced", "no: it gives no notice"


def fleet_page(fleet: wire.Scopes, *, now: datetime) -> Iterator[RenderableType]:
    # A scope outlives its VMs, which may come back; until then there is nothing to see in it.
    shown = [scope for scope in fleet.scopes if scope.vms or scope.open_events]
    if not shown:
        yield "The fleet is empty. 'forewarned fleet apply FILE' fills it."
        return
    for scope in shown:
        yield _scope_heading(scope, now)
        yield vm_table(scope.vms) if scope.vms else "no VMs"
        yield ""
    vms = sum(len(scope.vms) for scope in shown)
    yield f"{count(vms, 'VM')} in {count(len(shown), 'scope')}"


def _scope_heading(scope: wire.Scope, now: datetime) -> Text:
    if scope.active:
        seen = "" if scope.last_read_at is None else f", read {ago(scope.last_read_at, now)}"
        by = "" if scope.last_read_by is None else f" by {plain(scope.last_read_by)}"
        notice = (f"active{seen}{by}", "green")
    else:
        notice = ("inactive: no VM reads its document", "dim")
    parts = [f"incarnation {scope.incarnation}"]
    if scope.open_events:
        parts.append(count(scope.open_events, "open event"))
    if scope.maintenance is not None:
        parts.append(_maintenance(scope))
    return Text.assemble(
        (plain(scope.id), "bold"), f"  {kind(scope.kind)}, ", notice, f", {', '.join(parts)}"
    )


def _maintenance(scope: wire.Scope) -> str:
    if scope.maintenance is None or not scope.maintenance.remaining_update_domains:
        return "under maintenance"
    left = ", ".join(map(str, scope.maintenance.remaining_update_domains))
    return f"under {scope.maintenance.type} maintenance, update domains still to come: {left}"


def applied_page(applied: wire.FleetApplied) -> Iterator[RenderableType]:
    yield _applied("added", applied.added, "green")
    yield _applied("changed", applied.changed, "yellow")
    yield _applied("removed", applied.removed, "red")
    yield f"unchanged {applied.unchanged:,}"


def _applied(what: str, names: Sequence[str], style: str) -> Text:
    shown, most = names[:20], 20
    tail = f" and {len(names) - most:,} more" if len(names) > most else ""
    text = f"{what:<9} {len(names):,}" + (f": {listing(shown)}{tail}" if names else "")
    return Text(text, style if names else "")


def clock_line(clock: wire.Clock) -> str:
    match clock.state:
        case "real":
            pace = "real time"
        case "paused":
            pace = "paused"
        case _:
            pace = f"running at {clock.speed:g}x"
    return f"{instant(clock.now)} UTC, {pace}"
