"""Tables that fit 80 columns, without frames: they are read, copied and grepped."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from forewarned.cli.wording import (
    STATUS_STYLES,
    TYPE_STYLES,
    ago,
    duration,
    instant,
    kind,
    listing,
    plain,
    short_ids,
    stand,
)
from forewarned.control.v1.wire import Event, Fault, HistoryRow, Node, Setting, Vm
from forewarned.core.transitions import action_in_words, cause_in_words
from forewarned.security.identities import Principal

_NEVER_FOLDED: Final = frozenset(
    {"Event", "Type", "Status", "NotBefore (UTC)", "", "At (UTC)", "What", "UD", "FD", "Setting"}
)
_NODE: Final = frozenset({"Version", "State", "Lag", "Seen"})
_STATE_STYLES: Final = {"running": "", "interrupted": "yellow", "deallocated": "dim"}


def frameless(*columns: str, never_folded: Container[str] = _NEVER_FOLDED) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        # A long name goes on in the next line: cut off, it could not be copied.
        table.add_column(column, overflow="fold", no_wrap=column in never_folded)
    return table


def event_table(events: Sequence[Event], *, now: datetime) -> Table:
    table = frameless("Event", "Type", "Status", "NotBefore (UTC)", "", "VMs")
    short = short_ids(event.event_id for event in events)
    for event in events:
        table.add_row(
            short[event.event_id],
            Text(event.type, TYPE_STYLES.get(event.type, "")),
            Text(event.status, STATUS_STYLES.get(event.status, "")),
            _still_to_come(event),
            stand(event, now),
            listing(event.resources),
        )
    return table


def _still_to_come(event: Event) -> str:
    # Beside how long ago an event was canceled, its NotBefore would read as the time of that.
    if event.not_before is None or event.ended_at is not None:
        return ""
    return instant(event.not_before)


def history_table(rows: Sequence[HistoryRow]) -> Table:
    table = frameless("At (UTC)", "What", "Event", "VMs", "Who and why")
    short = short_ids(row.event_id for row in rows if row.event_id is not None)
    for row in rows:
        table.add_row(
            instant(row.at),
            _happening(row),
            "" if row.event_id is None else short[row.event_id],
            listing(row.resources),
            _who_and_why(row),
        )
    return table


def vm_table(vms: Iterable[Vm]) -> Table:
    table = frameless("VM", "Address", "Host", "UD", "FD", "Zone", "State", "Priority")
    for vm in vms:
        table.add_row(
            plain(vm.name),
            plain(vm.address) if vm.port_mark is None else _at_port(vm),
            plain(vm.host),
            str(vm.update_domain),
            str(vm.fault_domain),
            plain(vm.zone),
            Text(plain(vm.state), _STATE_STYLES.get(vm.state, "")),
            plain(vm.priority),
        )
    return table


def _at_port(vm: Vm) -> str:
    """A VM that is known by its port may have any address, or one that others have too."""
    return f"{plain(vm.address)} port mark {vm.port_mark}".lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """A scope that a fleet file would make."""

    scope: str
    kind: str
    vms: int
    update_domains: int
    names: tuple[str, ...]


def plan_table(rows: Iterable[PlannedRow]) -> Table:
    table = frameless("Scope", "Kind", "VMs", "UDs", "Names")
    for row in rows:
        names = row.names if len(row.names) <= 3 else (row.names[0], "…", row.names[-1])
        table.add_row(
            row.scope, kind(row.kind), str(row.vms), str(row.update_domains), listing(names)
        )
    return table


def setting_table(values: Iterable[Setting]) -> Table:
    table = frameless("Setting", "Value", "From")
    for setting in values:
        is_default = setting.origin == "default"
        table.add_row(
            setting.name,
            plain(setting.value),
            Text(plain(setting.origin), "dim" if is_default else "green"),
        )
    return table


def principal_table(principals: Iterable[Principal], *, now: datetime) -> Table:
    table = frameless("Name", "Role", "Client id", "Expires")
    for each in principals:
        table.add_row(each.name, each.role, each.client_id, _expiry(each, now))
    return table


def _expiry(principal: Principal, now: datetime) -> str:
    if principal.expires_at is None:
        return "never"
    when = f"{instant(principal.expires_at)} UTC"
    return f"{when}, expired" if principal.is_expired(now) else when


def node_table(nodes: Iterable[Node], *, now: datetime) -> Table:
    table = frameless("Node", "Version", "State", "Lag", "Seen", "Serves", never_folded=_NODE)
    for each in nodes:
        serves = [("metadata", each.metadata), ("control", each.control), ("arm", each.arm)]
        table.add_row(
            plain(each.name) + (" (this)" if each.this else ""),
            plain(each.version),
            Text("fresh") if each.fresh else Text("stale", "yellow"),
            duration(each.lag),
            ago(each.seen_at, now),
            "\n".join(f"{name:<8} {plain(at)}" for name, at in serves if at is not None),
        )
    return table


def fault_table(faults: Iterable[Fault]) -> Table:
    table = frameless("Fault", "What", "Delay", "For", "Used")
    for each in faults:
        table.add_row(
            plain(each.id),
            plain(each.kind) + ("" if each.status is None else f" {each.status}"),
            duration(each.delay),
            " ".join(plain(part) for part in (each.method, each.vm or "every VM") if part),
            f"{each.used}" if each.times is None else f"{each.used} of {each.times}",
        )
    return table


def _happening(row: HistoryRow) -> Text:
    words = action_in_words(row.action)
    if row.event_type is None:
        return Text(plain(words))
    return Text.assemble((row.event_type, TYPE_STYLES.get(row.event_type, "")), f" {plain(words)}")


def _who_and_why(row: HistoryRow) -> str:
    who = plain(row.actor)
    why = cause_in_words(row.action, row.cause)
    return f"{who}: {plain(why)}" if why else who
