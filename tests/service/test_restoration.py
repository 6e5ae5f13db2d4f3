"""What is told of a store that was restored."""

from collections.abc import Mapping

import pytest

from forewarned.clock import VirtualClock
from forewarned.service.ports import Transaction
from forewarned.service.restoration import (
    RESTORED_AT,
    RESTORED_BECAUSE,
    Restoration,
    restored_since,
)
from tests.bases import a_store
from tests.builders import HOUR, NOON

FOUND = Restoration(at=NOON, reason="a standby has taken over")
LATER = {RESTORED_AT: (NOON + HOUR).isoformat()}
"""As a node writes it that knows no other note."""


async def noted(*notes: Mapping[str, str]) -> Restoration | None:
    def put(tx: Transaction) -> None:
        for each in notes:
            for key, value in each.items():
                tx.put_note(key, value)

    async with a_store(VirtualClock(NOON)) as store:
        await store.transact(put)
        return await store.read(lambda snapshot: restored_since(snapshot, NOON))


async def test_what_is_noted_of_a_restoration_is_told() -> None:
    assert await noted(FOUND.notes()) == FOUND


async def test_a_later_restoration_is_not_told_with_the_reason_of_the_one_before() -> None:
    """A node of an earlier version may have found it, while others have been upgraded."""
    assert await noted(FOUND.notes(), LATER) == Restoration(at=NOON + HOUR, reason="")


@pytest.mark.parametrize("reason", ["a standby has taken over", "", "interrupted"])
async def test_a_reason_that_an_earlier_version_has_noted_is_told(reason: str) -> None:
    """Without an instant."""
    notes = {RESTORED_AT: NOON.isoformat(), RESTORED_BECAUSE: reason}

    assert await noted(notes) == Restoration(at=NOON, reason=reason)


async def test_of_a_store_that_was_restored_before_nothing_is_told() -> None:
    earlier = Restoration(at=NOON - HOUR, reason="a standby has taken over")

    assert await noted(earlier.notes()) is None
