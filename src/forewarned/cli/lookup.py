"""Names as people type them: the first characters of an event's id, a VM's name with a typo."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from forewarned.cli.failures import ADVICE, CommandError, RefusedError
from forewarned.cli.wording import listing, plain
from forewarned.control.v1 import wire
from forewarned.control.v1.subscriptions.wire import SubscriptionList

if TYPE_CHECKING:
    from forewarned.cli.connection import Control

_WHOLE_ID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_MOST_SHOWN: Final = 10
_MOST_ASKED: Final = 10_000


class Fit(NamedTuple):
    """Which events a command is for."""

    one: str
    """What is said of one: `no event is open`."""
    several: str
    holds: Callable[[wire.Event], bool]


OPEN: Final = Fit("is open", "are open", lambda event: event.ended_at is None)
# One that was not announced waits for no approval of its own.
APPROVABLE: Final = Fit(
    "can be approved",
    "can be approved",
    lambda event: event.status == "Scheduled" and event.approval is None and event.announced,
)
CANCELABLE: Final = Fit(
    "can be canceled", "can be canceled", lambda event: event.status == "Scheduled"
)
STARTED: Final = Fit("has started", "have started", lambda event: event.status == "Started")


def event_path(control: "Control", typed: str, fit: Fit = OPEN) -> str:
    return f"/v1/events/{quote(event_id(control, typed, fit), safe='')}"


def host_path(host: str) -> str:
    return f"/v1/hosts/{quote(host, safe='')}"


def scope_path(scope: str) -> str:
    return f"/v1/scopes/{quote(scope)}"


def event_id(control: "Control", typed: str, fit: Fit = OPEN) -> str:
    """The id that begins as typed: an open event's, and only if there is none, a past one's.

    Nothing typed means the open event that fits, where there is just one.
    """
    if _WHOLE_ID.fullmatch(typed):
        return typed
    if not typed:
        return _only(_events(control, "open"), fit)
    for status in ("open", "all"):
        found = matching(_events(control, status), typed)
        if len(found) == 1:
            return found[0].event_id
        if found:
            message = f"the ids of {len(found)} events begin with {plain(typed)!r}"
            raise _ambiguous(message, ["Type more of the one you mean:", *_listed(found)])
    raise _unknown(f"no event's id begins with {plain(typed)!r}", [ADVICE["unknown_event"]])


def _events(control: "Control", status: str) -> tuple[wire.Event, ...]:
    answer = control.get("/v1/events", {"status": status, "limit": _MOST_ASKED})
    return answer.read(wire.Events).events


def _only(events: Sequence[wire.Event], fit: Fit) -> str:
    found = [event for event in events if fit.holds(event)]
    if len(found) == 1:
        return found[0].event_id
    if found:
        message = f"{len(found)} events {fit.several}"
        raise _ambiguous(message, ["Say which:", *_listed(found)])
    advice = ["Open events:", *_listed(events)] if events else [ADVICE["unknown_event"]]
    raise _unknown(f"no event {fit.one}", advice)


def matching(events: Iterable[wire.Event], typed: str) -> list[wire.Event]:
    return [event for event in events if event.event_id.upper().startswith(typed.upper())]


def _listed(events: Sequence[wire.Event]) -> Iterator[str]:
    for event in events[:_MOST_SHOWN]:
        is_held = event.status == "Scheduled" and event.approval is not None
        approved = ", approved" if is_held else ""
        about = f"{event.type} {event.status} of {listing(event.resources)}{approved}"
        yield f"  {event.event_id}  {about}"
    if len(events) > _MOST_SHOWN:
        yield f"  and {len(events) - _MOST_SHOWN} more"


def _unknown(message: str, advice: list[str]) -> CommandError:
    return RefusedError(message, *advice, code="unknown_event", field="event_id")


def _ambiguous(message: str, advice: list[str]) -> CommandError:
    return RefusedError(message, *advice, code="ambiguous_event", field="event_id")


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


def vm_names(control: "Control") -> list[str]:
    fleet = control.get("/v1/fleet").read(wire.Scopes)
    return [vm.name for scope in fleet.scopes for vm in scope.vms]


def scope_ids(control: "Control") -> list[str]:
    return [scope.id for scope in control.get("/v1/fleet").read(wire.Scopes).scopes]


def host_names(control: "Control") -> list[str]:
    return [host.name for host in control.get("/v1/hosts").read(list[wire.Host])]


def suggesting_vms(control: "Control", typed: Iterable[str]) -> AbstractContextManager[None]:
    see = "'forewarned fleet show' lists the VMs."
    return suggesting("unknown_resource", typed, lambda: vm_names(control), see)


def suggesting_hosts(control: "Control", typed: str) -> AbstractContextManager[None]:
    see = "'forewarned fleet show' lists the VMs with their hosts."
    return suggesting("unknown_host", [typed], lambda: host_names(control), see)


def suggesting_scopes(control: "Control", typed: str) -> AbstractContextManager[None]:
    see = "'forewarned fleet show' lists the scopes."
    return suggesting("unknown_scope", [typed], lambda: scope_ids(control), see)


def doubts(control: "Control", asked: Mapping[str, str]) -> Iterator[str]:
    """Why a list may be empty: a name, by `vm` or by `scope`, that none has now."""
    scopes = control.get("/v1/fleet").read(wire.Scopes).scopes
    for key, what, known in (
        ("vm", "VM", [one.name for each in scopes for one in each.vms]),
        ("scope", "scope", [each.id for each in scopes]),
    ):
        if key in asked and asked[key].casefold() not in {name.casefold() for name in known}:
            yield f"No {what} is named {plain(asked[key])!r} now."
            yield from suggestions([asked[key]], known)


def open_event_ids(control: "Control") -> list[str]:
    return [event.event_id for event in control.get("/v1/events").read(wire.Events).events]


def fault_ids(control: "Control") -> list[str]:
    return [fault.id for fault in control.get("/v1/faults").read(wire.Faults).faults]


def subscription_names(control: "Control") -> list[str]:
    found = control.get("/v1/subscriptions").read(SubscriptionList).subscriptions
    return [each.name for each in found]
