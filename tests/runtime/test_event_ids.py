"""The ids that a server gives to events."""

from uuid import RFC_4122, UUID

from forewarned.clock import wall_clock
from forewarned.core.ids import parse_event_id
from forewarned.runtime.assembly import basis_of
from forewarned.runtime.settings import Settings


def test_ids_of_events_are_guids_in_the_order_in_which_they_are_made() -> None:
    new_event_id = basis_of(Settings()).new_event_id

    before = wall_clock()
    ids = [new_event_id() for _ in range(1_000)]
    after = wall_clock()

    assert len(set(ids)) == len(ids)
    guids = [UUID(each) for each in ids]
    assert {(guid.version, guid.variant) for guid in guids} == {(7, RFC_4122)}
    assert [parse_event_id(each) for each in ids] == ids
    # Of two that are made within a quarter of a microsecond the order is by chance.
    times = [guid.int >> 64 for guid in guids]
    assert times == sorted(times)
    made_at = guids[0].int >> 80
    assert before.timestamp() * 1000 - 1 <= made_at <= after.timestamp() * 1000
