"""What the store keeps of sources: what each has listed, and how its last listing went.

Two notes, because the second is written at every listing and the first only when VMs change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec

from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.sources.roster import Roster

_STATES: Final = "sources"
_ROSTER: Final = "source: "


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """A source, and how its last listing went."""

    name: str
    """The actuator's, whose platform it lists."""
    holder: str = ""
    """Who listed it: a host and a process."""
    every: timedelta = timedelta(0)
    reported_at: datetime | None = None
    began_at: datetime | None = None
    """When the last listing that was taken in began; None if none was."""
    complete_at: datetime | None = None
    """When it was last listed completely; None if it never was."""
    vms: int = 0
    """How many VMs it has brought into the fleet."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Hosts that did not answer, each with the reason."""
    error: str = ""
    """Why there was no listing at all; empty if there was one."""
    remarks: tuple[str, ...] = ()
    """What an operator should know of VMs that it lists: those that could not be added, and why."""
    more_remarks: int = 0
    """How many there are besides those."""


_states: Final = msgspec.json.Decoder(dict[str, SourceState])
_roster: Final = msgspec.json.Decoder(Roster)


def source_states(snapshot: Snapshot) -> dict[str, SourceState]:
    """By name."""
    text = snapshot.note(_STATES)
    return _states.decode(text) if text else {}


def put_state(tx: Transaction, state: SourceState) -> None:
    states = source_states(tx) | {state.name: state}
    tx.put_note(_STATES, _text(dict(sorted(states.items()))))


def roster_of(snapshot: Snapshot, name: str) -> Roster:
    text = snapshot.note(f"{_ROSTER}{name}")
    return _roster.decode(text) if text else Roster()


def put_roster(tx: Transaction, name: str, roster: Roster) -> None:
    tx.put_note(f"{_ROSTER}{name}", _text(roster))


def forget(tx: Transaction, name: str) -> None:
    states = source_states(tx)
    del states[name]
    tx.put_note(_STATES, _text(states))
    tx.put_note(f"{_ROSTER}{name}", "")


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
