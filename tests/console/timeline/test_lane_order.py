"""Which lanes there are: the next to start first, by name otherwise, a scale set in one."""

from dataclasses import replace

from forewarned.console.names import natural
from forewarned.console.timeline.lane_order import scale_set_of
from forewarned.console.timeline.picture import View, Zoom, build
from forewarned.core.ids import ScopeId
from forewarned.core.model import EventStatus
from forewarned.service.records import EventRecord
from tests.builders import HOUR, MINUTE, NOON
from tests.console.timeline.test_picture import NOW, a_record, bars

SET_VIEW = View(zoom=Zoom.HOUR)


def lanes(*records: EventRecord, view: View = SET_VIEW) -> list[str]:
    return [lane.heading.key for lane in build(records, now=NOW, view=view).lanes]


def in_groups(*numbers: int) -> list[EventRecord]:
    """An event in each of these placement groups of one scale set."""
    return [a_record(1 + n, scope=f"vmss/shop/{n}", resources=[f"shop_{n}"]) for n in numbers]


def test_names_are_in_the_order_people_expect() -> None:
    names = ["web-10", "web-2", "Web-1", "web", "db-3", "10", "9"]

    assert sorted(names, key=natural) == ["9", "10", "db-3", "web", "Web-1", "web-2", "web-10"]


def test_the_lane_with_the_next_event_to_start_is_the_first() -> None:
    far = a_record(1, scope="vm/a", not_before=NOW + HOUR / 2)
    near = a_record(2, scope="vm/z", not_before=NOW + 5 * MINUTE)
    nearer_too = a_record(3, scope="vm/a", not_before=NOW + MINUTE)

    assert lanes(far, near) == ["vm/z", "vm/a"]
    assert lanes(far, near, nearer_too) == ["vm/a", "vm/z"]


def test_what_has_started_comes_after_what_is_to_start_and_before_what_is_over() -> None:
    over = replace(a_record(1, scope="vm/a", status=EventStatus.CANCELED), ended_at=NOON - MINUTE)
    started = a_record(2, scope="vm/b", status=EventStatus.STARTED)
    waiting = a_record(3, scope="vm/c", not_before=NOW + HOUR / 2)

    assert lanes(over, started, waiting) == ["vm/c", "vm/b", "vm/a"]


def test_lanes_that_are_as_urgent_are_in_natural_order() -> None:
    records = [a_record(n, scope=f"vm/web-{n}") for n in (10, 9, 2, 1)]

    assert lanes(*records) == ["vm/web-1", "vm/web-2", "vm/web-9", "vm/web-10"]


def test_placement_groups_of_a_scale_set_share_a_lane_until_it_is_opened() -> None:
    records = [*in_groups(10, 2), a_record(99, scope="vmss/other/0")]

    folded = build(records, now=NOW, view=SET_VIEW)
    opened = build(records, now=NOW, view=View(zoom=Zoom.HOUR, opened=frozenset({"vmss/shop"})))

    assert [lane.heading.key for lane in folded.lanes] == ["vmss/other/0", "vmss/shop"]
    [_, (_, href, together)] = [placed for lane in folded.lanes for placed in lane.bars]
    assert together.label == "Reboot × 2"
    assert href == folded.lanes[1].heading.href == "/?zoom=1h&open=vmss%2Fshop"
    assert [(lane.heading.key, lane.rows) for lane in opened.lanes] == [
        ("vmss/other/0", 1),
        ("vmss/shop", 0),
        ("vmss/shop/2", 1),
        ("vmss/shop/10", 1),
    ]
    assert opened.lanes[1].heading.href == "/?zoom=1h"
    assert opened.shown == folded.shown == 3
    assert [bar.label for bar in bars(opened)[1:]] == ["Reboot shop_2", "Reboot shop_10"]


def test_a_folded_set_is_as_urgent_as_the_most_urgent_of_its_groups() -> None:
    groups = [
        a_record(1, scope="vmss/shop/0", not_before=NOW + HOUR / 2),
        a_record(2, scope="vmss/shop/1", not_before=NOW + MINUTE),
    ]

    assert lanes(*groups, a_record(3, scope="vm/a")) == ["vmss/shop", "vm/a"]


def test_one_placement_group_alone_and_a_scope_by_itself_are_not_folded() -> None:
    assert lanes(*in_groups(3)) == ["vmss/shop/3"]
    assert lanes(*in_groups(3, 4), view=View(scope=ScopeId("vmss/shop/4"))) == ["vmss/shop/4"]


def test_only_placement_groups_belong_to_a_scale_set() -> None:
    scopes = map(ScopeId, ["vmss/shop/0", "vm/web", "avset/db", "service/vmss/0", "vmss/odd"])

    assert [scale_set_of(scope) for scope in scopes] == ["vmss/shop", None, None, None, None]
