"""The clock bar: an emulator's time, moved by people."""

from datetime import datetime, timedelta
from typing import Final

from starlette.responses import Response

from forewarned.console.context import REFUSED, Visit, own_path, see
from forewarned.console.forms import FieldError, Form
from forewarned.core.model import EventStatus
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Snapshot

_MOST_TIMERS: Final = 1000
"""Calls on the way to the next change that change nothing, such as writing down who has read."""
_MANY: Final = 100_000


async def move_clock(visit: Visit) -> Response:
    form = await visit.form()
    # The page the bar was on.
    back = own_path(form.text("back"))
    try:
        await _move(visit, visit.named("how"), form)
    except REFUSED as refusal:
        message = str(refusal)
        return visit.page("clock_refused.html", is_refused=True, message=message, leads_to=back)
    return see(back)


async def _move(visit: Visit, how: str, form: Form) -> None:
    time = visit.use_cases.clock_control
    match how:
        case "pause":
            await time.pause()
        case "resume":
            await time.resume()
        case "speed":
            await time.run(form.number("speed"))
        case "step":
            by = form.span("by")
            await time.step(timedelta(minutes=1) if by is None else by)
        case "next-not-before":
            instant = await visit.ask(_next_not_before)
            if instant is None:
                raise FieldError("no event is waiting for its NotBefore, so there is none to go to")
            await time.step(instant - time.show().now)
        case "next-change":
            await _step_to_change(visit)
        case _:
            raise FieldError(f"the clock can't {how[:50]!r}")


async def _step_to_change(visit: Visit) -> None:
    """To the first instant at which history grows."""
    time = visit.use_cases.clock_control
    before = await visit.ask(_last_row)
    for _ in range(_MOST_TIMERS):
        instant = visit.services.next_timer()
        if instant is None:
            break
        left = instant - time.show().now
        # Time stands on whole seconds, and what is due in this one may not have been called yet.
        await time.step(max(left, timedelta(seconds=1)))
        if await visit.ask(_last_row) != before:
            return
    raise FieldError(
        "nothing is due, so moving the clock would change nothing: schedule an event first"
    )


def _next_not_before(snapshot: Snapshot) -> datetime | None:
    waiting = snapshot.events(EventFilter(statuses=frozenset({EventStatus.SCHEDULED}), limit=_MANY))
    instants = (record.event.not_before for record in waiting)
    ahead = (instant for instant in instants if instant is not None and instant > snapshot.now)
    return min(ahead, default=None)


def _last_row(snapshot: Snapshot) -> int:
    return next((row.id for row in snapshot.history(HistoryFilter(limit=1))), 0)
