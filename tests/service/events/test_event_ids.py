"""The ids that a server gives to events."""

import random
from itertools import pairwise
from uuid import RFC_4122, UUID

from forewarned.core.ids import parse_event_id
from forewarned.runtime.assembly import basis_of
from forewarned.runtime.settings import Settings
from forewarned.service.events.event_ids import EventIds

NOON = 1_794_916_800 * 10**9
SECOND = 10**9
DAY = 86_400 * SECOND


def head(event_id: str) -> int:
    return int(event_id[:8], 16)


def test_ids_of_events_are_guids_that_are_never_given_twice() -> None:
    new_event_id = basis_of(Settings()).new_event_id

    ids = [new_event_id() for _ in range(1_000)]

    assert len(set(ids)) == len(ids)
    assert {(UUID(each).version, UUID(each).variant) for each in ids} == {(8, RFC_4122)}
    assert [parse_event_id(each) for each in ids] == ids


def test_ids_that_are_made_at_the_same_instant_differ_in_what_lists_show_of_them() -> None:
    new_event_id = EventIds(lambda: NOON, random.Random(1).getrandbits)

    heads = [head(new_event_id()) for _ in range(1_000)]

    assert {after - before for before, after in pairwise(heads)} == {1}


def test_ids_are_in_order_of_time_also_where_the_clock_is_set_back() -> None:
    now = NOON
    new_event_id = EventIds(lambda: now, random.Random(1).getrandbits)

    first = new_event_id()
    now += SECOND
    second = new_event_id()
    now -= 5 * SECOND
    third = new_event_id()

    assert first < second < third


def test_three_days_pass_before_the_first_eight_characters_come_again() -> None:
    now = NOON
    new_event_id = EventIds(lambda: now, random.Random(1).getrandbits)

    first = head(new_event_id())
    now += 3 * DAY
    later = head(new_event_id())

    assert (later - first) % 2**32 > 2**31
