"""Names as people type them: the first characters of an event's id, a VM's name with a slip."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final
from urllib.parse import quote

from notbefore.cli import wire
from notbefore.cli.connection import Control
from notbefore.cli.failures import ADVICE, CommandError, RefusedError
from notbefore.cli.wording import listing, plain

_WHOLE_ID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_MOST_SHOWN: Final = 10
_MOST_ASKED: Final = 10_000


def event_path(control: Control, typed: str) -> str:
    return f"/v1/events/{quote(event_id(control, typed), safe='')}"


def host_path(host: str) -> str:
    return f"/v1/hosts/{quote(host, safe='')}"


def scope_path(scope: str) -> str:
    return f"/v1/scopes/{quote(scope)}"


def event_id(control: Control, typed: str) -> str:
    """The id that begins as typed: an open event's, and only if there is none, a past one's.

    Nothing typed means the open event, where there is just one.
    """
    if _WHOLE_ID.fullmatch(typed):
        return typed
    for status in ("open", "all") if typed else ("open",):
        answer = control.get("/v1/events", {"status": status, "limit": _MOST_ASKED})
        found = matching(answer.read(wire.Events).events, typed)
        if len(found) == 1:
            return found[0].event_id
        if found:
            raise _ambiguous(typed, found)
    raise RefusedError(
        f"no event's id begins with {plain(typed)!r}" if typed else "there is no open event",
        code="unknown_event",
        field="event_id",
        advice=[ADVICE["unknown_event"]],
    )


def matching(events: Iterable[wire.Event], typed: str) -> list[wire.Event]:
    return [event for event in events if event.event_id.upper().startswith(typed.upper())]


def _ambiguous(typed: str, found: list[wire.Event]) -> CommandError:
    shown = [
        f"  {event.event_id}  {event.type} {event.status} of {listing(event.resources)}"
        for event in found[:_MOST_SHOWN]
    ]
    if len(found) > _MOST_SHOWN:
        shown.append(f"  and {len(found) - _MOST_SHOWN} more")
    return RefusedError(
        f"{len(found)} events' ids begin with {plain(typed)!r}"
        if typed
        else f"there are {len(found)} open events",
        code="ambiguous_event",
        field="event_id",
        advice=["Type more of the one you mean:" if typed else "Say which:", *shown],
    )


@contextmanager
def suggesting(
    code: str, typed: Iterable[str], known: Callable[[], Iterable[str]], see: str
) -> Iterator[None]:
    """Add the nearest names to a refusal with this code."""
    try:
        yield
    except RefusedError as refusal:
        if refusal.code == code:
            refusal.advice += [*suggestions(typed, known()), see]
        raise


def suggestions(typed: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    folded = {name.casefold(): name for name in known}
    for name in typed:
        if name.casefold() in folded:
            continue
        near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
        if near:
            yield f"Instead of {plain(name)}, did you mean {listing(folded[one] for one in near)}?"


def vm_names(control: Control) -> list[str]:
    fleet = control.get("/v1/fleet").read(wire.Fleet)
    return [vm.name for scope in fleet.scopes for vm in scope.vms]


def scope_ids(control: Control) -> list[str]:
    return [scope.id for scope in control.get("/v1/fleet").read(wire.Fleet).scopes]


def host_names(control: Control) -> list[str]:
    return [host.name for host in control.get("/v1/hosts").read(list[wire.Host])]


def suggesting_vms(control: Control, typed: Iterable[str]) -> AbstractContextManager[None]:
    see = "'notbefore fleet show' lists the VMs."
    return suggesting("unknown_resource", typed, lambda: vm_names(control), see)


def suggesting_hosts(control: Control, typed: str) -> AbstractContextManager[None]:
    see = "'notbefore fleet show' lists the VMs with their hosts."
    return suggesting("unknown_host", [typed], lambda: host_names(control), see)


def suggesting_scopes(control: Control, typed: str) -> AbstractContextManager[None]:
    see = "'notbefore fleet show' lists the scopes."
    return suggesting("unknown_scope", [typed], lambda: scope_ids(control), see)


def doubts(control: Control, *, vm: str | None, scope: str | None) -> Iterator[str]:
    """Why a list may be empty: a name that no VM, or no scope, has now."""
    scopes = control.get("/v1/fleet").read(wire.Fleet).scopes
    for what, typed, known in (
        ("VM", vm, [one.name for each in scopes for one in each.vms]),
        ("scope", scope, [each.id for each in scopes]),
    ):
        if typed is not None and typed.casefold() not in {name.casefold() for name in known}:
            yield f"No {what} is named {plain(typed)!r} now."
            yield from suggestions([typed], known)


def open_event_ids(control: Control) -> list[str]:
    return [event.event_id for event in control.get("/v1/events").read(wire.Events).events]


def fault_ids(control: Control) -> list[str]:
    return [fault.id for fault in control.get("/v1/faults").read(wire.MadeFaults).faults]
