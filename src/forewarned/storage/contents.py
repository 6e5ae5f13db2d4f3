"""What the store in memory holds."""

from dataclasses import dataclass, field
from datetime import datetime

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Binding, Declaration, EventRecord, OperationRecord, Saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Everything stored. No field is ever replaced; a copy's fields may be changed in place."""

    scopes: dict[ScopeId, Saved] = field(default_factory=dict)
    wakes: dict[ScopeId, datetime] = field(default_factory=dict)
    owners: dict[str, ScopeId] = field(default_factory=dict)
    """The scope of every VM, by its folded name."""
    bindings: dict[str, Binding] = field(default_factory=dict)
    """By folded name."""
    addresses: dict[str, ResourceName] = field(default_factory=dict)
    events: dict[EventId, EventRecord] = field(default_factory=dict)
    """Open and over, oldest first."""
    history: list[HistoryRow] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    declarations: dict[str, Declaration] = field(default_factory=dict)
    """By folded path."""
    operations: dict[str, OperationRecord] = field(default_factory=dict)

    def copy(self) -> "Contents":
        return Contents(
            scopes=self.scopes.copy(),
            wakes=self.wakes.copy(),
            owners=self.owners.copy(),
            bindings=self.bindings.copy(),
            addresses=self.addresses.copy(),
            events=self.events.copy(),
            history=self.history.copy(),
            notes=self.notes.copy(),
            declarations=self.declarations.copy(),
            operations=self.operations.copy(),
        )
