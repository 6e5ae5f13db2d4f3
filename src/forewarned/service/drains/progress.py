"""What follows for a drain from where its VMs are. Pure: the time is an argument.

Invariant: a drain never repeats itself without end. Each VM gets a few events, and what is then
still on the host is named with its reason, for an operator.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Final, assert_never

from forewarned.config.durations import format_duration
from forewarned.core import notice
from forewarned.core.copying import replace
from forewarned.core.ids import HostName, ResourceName, ScopeId, same_name
from forewarned.core.model import EventStatus, Resource
from forewarned.core.tasks import SIMULATED
from forewarned.service.drains.model import (
    PATIENCE,
    SPACING,
    TRIES,
    Drain,
    DrainState,
    HostListing,
    Move,
    MoveState,
)
from forewarned.service.records import EventRecord

NO_ACTUATOR: Final = "no actuator carries out its events"
_BY_FLEET: Final = "this is only what the fleet says, because"
NOT_ASKED: Final = f"{_BY_FLEET} no actuator was asked"
UNLISTED: Final = f"{_BY_FLEET} the VMs' actuator can't ask the platform which VMs are on a host"
_SHOWN: Final = 5
"""VMs that a reason names; the drain itself has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A VM as the store has it now."""

    scope_id: ScopeId
    resource: Resource
    reads: bool
    """Whether VMs of its scope read their document."""
    actuator: str
    event: EventRecord | None
    """The newest that the drain has scheduled for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyAnswer:
    vm: ResourceName
    possible: bool
    reason: str
    """Why it can't be moved."""
    target: str | None
    """Where it would be moved; None if the platform chooses."""


Standings = Mapping[ResourceName, Standing]
"""Of the host's VMs, and of those that the drain has moved and the fleet still has."""


def reviewed(drain: Drain, standings: Standings, *, now: datetime) -> Drain:
    """The drain with every VM's part as it is now, and with VMs that have come to the host."""
    known = {move.vm for move in drain.moves}
    arrived = [
        Move(vm=name, actuator=standing.actuator, asked_at=now)
        for name, standing in sorted(standings.items())
        if name not in known and standing.resource.host == drain.host and not drain.is_returning
    ]
    moves = [
        _moved_on(move, drain, standings.get(move.vm), now=now) for move in (*drain.moves, *arrived)
    ]
    moves = [_given_up(move) if _is_unanswered(move, now=now) else move for move in moves]
    return _in_waves(replace(drain, moves=tuple(moves)), standings)


def due(drain: Drain, *, now: datetime) -> list[tuple[Move, timedelta]]:
    """The VMs that get an event now, each with its notice.

    VMs that read their document get theirs early: they may be ready before their wave. The others
    are moved without notice, so only those of one wave are moved at once.
    """
    if not drain.goes:
        return []
    least, spacing = least_notice(drain), _spacing(drain, least_notice(drain))
    waiting = [move for move in drain.moves if move.state is MoveState.WAITING]
    found = [
        (move, max(least, drain.began_at + least + move.wave * spacing - now))
        for move in waiting
        if move.reads
    ]
    unread = [move for move in drain.moves if move.is_open and not move.reads]
    for move in sorted(waiting, key=lambda move: move.wave):
        is_turn = all(move.wave == other.wave for other in unread)
        if not move.reads and is_turn and len(unread) < drain.order.wave:
            unread.append(move)
            found.append((move, least))
    return found


def surveyed(drain: Drain, answer: SurveyAnswer, *, now: datetime) -> Drain:
    """With what an actuator says of a VM. It has time again for the others that it is asked for."""
    asked = next((m for m in drain.moves if m.is_asked and same_name(m.vm, answer.vm)), None)
    if asked is None:
        return drain
    told = replace(
        asked,
        state=MoveState.WAITING if answer.possible else MoveState.BLOCKED,
        possible=answer.possible,
        reason="" if answer.possible else answer.reason,
        target=answer.target,
        given_up=False,
    )

    def after(move: Move) -> Move:
        if move is asked:
            return told
        waits = move.state is MoveState.ASKED and move.actuator == told.actuator
        return replace(move, asked_at=now) if waits else move

    return replace(drain, moves=tuple(map(after, drain.moves)))


def taken_over(earlier: Drain) -> tuple[Move, ...]:
    """What a new drain of the host goes on with: what is open, and what has been moved.

    Without the VMs that were moved, a return would leave them away. Those of a drain that was
    ended are not returned by the next: the operator who ended it left them where they are.
    """
    has_moved = not earlier.order.dry_run and earlier.state is not DrainState.CANCELED
    return tuple(
        move
        for move in earlier.moves
        if move.is_open
        or (has_moved and move.state is MoveState.MOVED and move.moved_to is not None)
    )


def returning(drain: Drain, *, now: datetime) -> Drain:
    """The drain turned round: what it has moved is moved back. Nothing else is left of it."""
    moves = [
        Move(vm=move.vm, actuator=move.actuator, asked_at=now, event_id=started)
        for move in drain.moves
        if (started := move.event_id if move.state is MoveState.MOVING else None)
        or (move.state is MoveState.MOVED and move.moved_to is not None)
    ]
    return replace(
        drain,
        state=DrainState.RETURNING,
        order=replace(drain.order, deadline=None, dry_run=False),
        began_at=now,
        changed_at=now,
        moves=tuple(moves),
        goes=True,
        moved_at=None,
        listings=(),
    )


def least_notice(drain: Drain) -> timedelta:
    if drain.order.notice is not None:
        return drain.order.notice
    return notice.minimum(drain.order.type, ())


def settled(drain: Drain, *, now: datetime) -> Drain:
    """The drain in the state that its VMs put it in."""
    if drain.is_returning:
        return _settled_return(drain, now=now)
    is_left = any(move.state is not MoveState.MOVED for move in drain.moves)
    moved_at = None if is_left else drain.moved_at or now
    listings = () if is_left else drain.listings
    # Once an operator was told that nothing is begun, a late answer begins nothing.
    goes = drain.goes or (drain.state is DrainState.PLANNING and _may_go(drain))
    drain = replace(drain, goes=goes, moved_at=moved_at, listings=listings)
    state, reason = _state(drain, now=now)
    changed_at = drain.changed_at if state is drain.state else now
    return replace(drain, state=state, reason=reason, changed_at=changed_at)


def next_look(drain: Drain, *, now: datetime) -> datetime | None:
    """When to look at it even if nothing happens; None if time alone changes nothing."""
    if not drain.is_watched or drain.state is DrainState.EMPTY:
        return None
    limits = [drain.deadline_at]
    limits += [each.asked_at + PATIENCE for each in drain.moves if each.state is MoveState.ASKED]
    if drain.moved_at is not None:
        limits.append(drain.moved_at + PATIENCE)
    return min((limit for limit in limits if limit is not None and limit > now), default=None)


def is_asked_for_listing(drain: Drain) -> bool:
    """Not once it is empty: from then on the fleet tells of VMs that come."""
    is_over = drain.is_returning or drain.state is DrainState.EMPTY
    return drain.moved_at is not None and drain.is_watched and not is_over


def listing_actuators(drain: Drain) -> list[str]:
    """Those that are asked which VMs the platform has on the host. The emulator has no other."""
    found = dict.fromkeys(each.actuator for each in drain.moves)
    return [actuator for actuator in found if actuator not in {"", SIMULATED}]


def listed(drain: Drain, listing: HostListing) -> Drain:
    """With what an actuator says of the host, if it is asked."""
    if not is_asked_for_listing(drain) or listing.actuator not in listing_actuators(drain):
        return drain
    others = tuple(each for each in drain.listings if each.actuator != listing.actuator)
    return replace(drain, listings=(*others, listing))


# --- one VM --------------------------------------------------------------------------------------


def _moved_on(move: Move, drain: Drain, standing: Standing | None, *, now: datetime) -> Move:
    if standing is None:
        return replace(move, state=MoveState.MOVED, reason="gone, or deallocated", moved_to=None)
    host, record = standing.resource.host, standing.event
    if (host == drain.host) == drain.is_returning and not _is_leaving(move, drain, record):
        return replace(move, state=MoveState.MOVED, reason="", moved_to=host)
    move = replace(move, reads=standing.reads, actuator=standing.actuator, moved_to=None)
    if record is not None and drain.is_returning and not move.tries and record.ended_at is not None:
        # What was under way when the drain was ended is over: now it can return.
        move, record = replace(move, event_id=None, state=MoveState.ASKED, asked_at=now), None
    if record is not None:
        return _by_event(move, host, record)
    move = _without_notice(move, drain)
    if not move.actuator:
        return replace(move, state=MoveState.BLOCKED, reason=NO_ACTUATOR)
    if move.actuator == SIMULATED:
        return replace(move, state=_unless_blocked(move), possible=True)
    if move.state is MoveState.MOVED:
        # It has come back without an event of this drain.
        return replace(move, state=MoveState.ASKED, asked_at=now)
    return move


def _is_leaving(move: Move, drain: Drain, record: EventRecord | None) -> bool:
    """Whether it is still on the host that it returns to, but on its way to another."""
    is_first = drain.is_returning and not move.tries
    return is_first and record is not None and record.ended_at is None


def _without_notice(move: Move, drain: Drain) -> Move:
    """One that would return without notice stays, unless the operator has allowed that."""
    if not drain.is_returning or move.reads or drain.order.anyway:
        return move
    reason = "it would be moved back without notice, because it does not read its document"
    return replace(move, state=MoveState.BLOCKED, reason=reason)


def _unless_blocked(move: Move) -> MoveState:
    return move.state if move.state is MoveState.BLOCKED else MoveState.WAITING


def _by_event(move: Move, host: HostName, record: EventRecord) -> Move:
    match record.event.status:
        case EventStatus.SCHEDULED:
            return replace(move, state=MoveState.NOTICE)
        case EventStatus.STARTED:
            return replace(move, state=MoveState.MOVING)
        case EventStatus.CANCELED:
            # Someone does not want it to be moved: another event would only be canceled again.
            reason = f"its event was canceled: {record.end_reason}"
            return replace(move, state=MoveState.BLOCKED, reason=reason)
        case EventStatus.COMPLETED:
            reason = record.end_reason or f"its event is over, and it is still on {host}"
            if move.tries >= TRIES:
                reason = f"{move.tries} events have failed, the last: {reason}"
                return replace(move, state=MoveState.BLOCKED, reason=reason)
            return replace(move, state=MoveState.WAITING, reason=reason)
        case other:
            assert_never(other)


def _is_unanswered(move: Move, *, now: datetime) -> bool:
    return move.state is MoveState.ASKED and now >= move.asked_at + PATIENCE


def _given_up(move: Move) -> Move:
    reason = (
        f"actuator {move.actuator!r} has not said within {format_duration(PATIENCE)} whether the VM"
        " can be moved: check that the actuator is running"
    )
    return replace(move, state=MoveState.BLOCKED, reason=reason, given_up=True)


# --- all of them ---------------------------------------------------------------------------------


def _in_waves(drain: Drain, standings: Standings) -> Drain:
    """Give those that have had no event their wave; the others keep theirs.

    Invariant: no wave has VMs of two update domains of one scope. An operator's promise to a set
    is that they don't go down together.
    """
    size = drain.order.wave
    waves: defaultdict[int, list[Move]] = defaultdict(list)
    for move in drain.moves:
        is_left = move.state is not MoveState.MOVED and move.vm in standings
        if is_left and move.event_id is not None:
            waves[move.wave].append(move)
    placed = []
    for move in drain.moves:
        standing = standings.get(move.vm)
        is_placed = move.event_id is not None or move.state is MoveState.MOVED
        if standing is not None and not is_placed:
            number = next(n for n in count() if _fits(standing, waves[n], size, standings))
            waves[number].append(move)
            move = replace(move, wave=number)  # noqa: PLW2901  # the same one, in its wave
        placed.append(move)
    return replace(drain, moves=tuple(placed))


def _fits(standing: Standing, wave: Collection[Move], size: int, standings: Standings) -> bool:
    if len(wave) >= size:
        return False
    others = (standings[move.vm] for move in wave)
    return not any(
        other.scope_id == standing.scope_id
        and other.resource.update_domain != standing.resource.update_domain
        for other in others
    )


def _spacing(drain: Drain, least: timedelta) -> timedelta:
    if drain.order.deadline is None:
        return SPACING
    waves = max((move.wave for move in drain.moves), default=0) + 1
    return max(timedelta(0), min(SPACING, (drain.order.deadline - least) / waves))


def _may_go(drain: Drain) -> bool:
    if drain.order.dry_run or any(move.state is MoveState.ASKED for move in drain.moves):
        return False
    return drain.order.anyway or not obstacles(drain)


def obstacles(drain: Drain) -> str:
    """What an operator should know before it begins; empty if there is nothing."""
    blocked = [move.vm for move in drain.moves if move.state is MoveState.BLOCKED]
    unread = [move.vm for move in drain.moves if move.state is MoveState.WAITING and not move.reads]
    parts = []
    if blocked:
        parts.append(f"can't be moved: {_few(blocked)}")
    if unread:
        parts.append(
            f"would be moved without notice, because they don't read their document: {_few(unread)}"
        )
    return "; ".join(parts)


def _state(drain: Drain, *, now: datetime) -> tuple[DrainState, str]:
    states = {move.state for move in drain.moves}
    if not drain.goes:
        if MoveState.ASKED in states:
            return DrainState.PLANNING, ""
        return DrainState.PLANNED, obstacles(drain)
    left = [move for move in drain.moves if move.state is not MoveState.MOVED]
    if not left:
        return _when_moved(drain, now=now)
    blocked = [move.vm for move in left if move.state is MoveState.BLOCKED]
    if len(blocked) == len(left):
        return DrainState.STUCK, f"can't be moved: {_few(blocked)}"
    if drain.deadline_at is not None and now >= drain.deadline_at:
        late = f"these VMs have not been moved: {_few(m.vm for m in left)}"
        return DrainState.STUCK, f"the deadline has passed, and {late}"
    begun = states & {MoveState.MOVING, MoveState.MOVED}
    return DrainState.MOVING if begun else DrainState.NOTICE, ""


def _settled_return(drain: Drain, *, now: datetime) -> Drain:
    if not all(move.state in {MoveState.MOVED, MoveState.BLOCKED} for move in drain.moves):
        return drain
    blocked = [move.vm for move in drain.moves if move.state is MoveState.BLOCKED]
    told = f"not moved back: {_few(blocked)}" if blocked else "all VMs are back"
    reason = f"{drain.reason}; {told}"
    return replace(drain, state=DrainState.CANCELED, reason=reason, changed_at=now)


def _when_moved(drain: Drain, *, now: datetime) -> tuple[DrainState, str]:
    if drain.state is DrainState.EMPTY:
        return drain.state, drain.reason
    asked = listing_actuators(drain)
    answers = {each.actuator: each for each in drain.listings}
    found = dict.fromkeys(vm for each in drain.listings for vm in each.vms or ())
    reasons = [f"still on the host according to the platform: {_few(found)}"] if found else []
    reasons += [
        f"actuator {each.actuator!r} can't list {drain.host}: {each.error}"
        for each in drain.listings
        if each.error
    ]
    silent = [actuator for actuator in asked if actuator not in answers]
    if not reasons and not silent:
        is_listed = any(each.vms is not None for each in drain.listings)
        return DrainState.EMPTY, "" if is_listed else UNLISTED if asked else NOT_ASKED
    if drain.moved_at is None or now < drain.moved_at + PATIENCE:
        return DrainState.VERIFYING, "; ".join(reasons)
    # They are asked on: an answer that comes late counts as well.
    reasons += [
        f"actuator {each!r} does not say which VMs are on {drain.host}: check that it is running"
        for each in silent
    ]
    return DrainState.STUCK, "; ".join(reasons)


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
