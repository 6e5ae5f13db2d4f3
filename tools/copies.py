"""What `core.copying` is worth: a copy by slots beside one by the standard library.

python -m tools.copies
"""

import dataclasses
from datetime import UTC, datetime
from functools import partial
from timeit import repeat
from typing import Final

from benchmarks.figures import ratios
from forewarned.core import copying
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Event, EventSource, EventStatus, EventType, Scope, ScopeKind

_COPIES: Final = 20_000
_NOON: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)
_EVENT: Final = Event(
    id=EventId("0000000A-0000-4000-8000-000000000000"),
    type=EventType.REBOOT,
    status=EventStatus.SCHEDULED,
    source=EventSource.PLATFORM,
    resources=(ResourceName("vm1"),),
    created_at=_NOON,
    not_before=_NOON,
)
_SCOPE: Final = Scope(id=ScopeId("scope1"), kind=ScopeKind.VIRTUAL_MACHINE)


def main() -> None:
    started = {"status": EventStatus.STARTED, "not_before": None, "started_at": _NOON}
    for value, changes in ((_EVENT, started), (_SCOPE, {"incarnation": 2})):
        # One after the other in each round: both sides see the same noise.
        rounds = [
            [
                min(repeat(partial(copy, value, **changes), number=_COPIES, repeat=3))
                for copy in (dataclasses.replace, copying.replace)
            ]
            for _ in range(7)
        ]
        standard, ours = zip(*rounds, strict=True)
        spread = ratios(standard, ours)
        print(
            f"{type(value).__name__}: {min(ours) / _COPIES * 1e6:.1f} µs a copy,"
            f" the standard library {min(standard) / _COPIES * 1e6:.1f} µs:"
            f" {spread.median:.2f} × ({spread.low:.2f} … {spread.high:.2f})"
        )


if __name__ == "__main__":
    main()
