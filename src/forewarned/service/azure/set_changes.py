"""What a person asks of a scale set, field by field, before it is in any client's words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from forewarned.core.errors import Category, RefusalError
from forewarned.service.azure.inventory import Machine, ScaleSetView
from forewarned.service.azure.scale_sets import Upgrade, WantedSet
from forewarned.service.fleet.declaration import Model
from forewarned.service.ports import Snapshot


class BadWishError(RefusalError):
    """A wish that no scale set can meet."""

    category = Category.INVALID

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWish:
    """What is None stays as it is; of a new set, as is usual."""

    capacity: int | None = None
    size: str | None = None
    is_flexible: bool | None = None
    is_spot: bool | None = None
    is_notified: bool | None = None
    """Whether instances are told before they are deleted."""
    terminate_notice: timedelta | None = None
    """How long before: the portal's termination delay."""


class WishReader(Protocol):
    """Puts wishes in the words that a set's document is kept in, and reads it."""

    def model(self, view: ScaleSetView) -> Model:
        """What new instances are made from, and the others can be brought to."""

    def new_group(self, name: str, location: str) -> str:
        """The document of a resource group to put a set into. Raises BadWishError."""

    def is_flexible(self, view: ScaleSetView) -> bool:
        """Its orchestration mode, also of a set that has no instances to tell by."""

    def wanted(
        self, view: ScaleSetView | None, wish: SetWish, *, name: str, location: str
    ) -> WantedSet:
        """Raises BadWishError."""

    def upgrade(
        self, snapshot: Snapshot, view: ScaleSetView, chosen: Sequence[Machine]
    ) -> Upgrade: ...
