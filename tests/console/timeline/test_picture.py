"""Where the bars stand: in order, inside the picture, never upon each other, with 5 and with 500."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.console.forms import Form
from forewarned.console.timeline.bars import Bar, packed
from forewarned.console.timeline.lanes import HIGH, LOW, MOST_ROWS, Sketches
from forewarned.console.timeline.picture import (
    CROWDED,
    NEAR,
    NOW_STANDS_AT,
    SPANS,
    Timeline,
    View,
    Zoom,
    build,
    fitting,
    ticks,
)
from forewarned.core.ids import ScopeId
from forewarned.core.model import Approval, EventStatus, EventType
from forewarned.service.records import EventRecord
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND, A, an_event, event_id

HOUR_VIEW = View(zoom=Zoom.HOUR)
NOW = NOON - 10 * MINUTE


def a_record(number: int = 0xA, *, scope: str = "vm/web", **event: object) -> EventRecord:
    made = an_event(event_id(number), **event)  # type: ignore[arg-type]  # as the builder has them
    return EventRecord(scope_id=ScopeId(scope), event=made)


def bars(timeline: Timeline) -> list[Bar]:
    return [placed.bar for lane in timeline.lanes for placed in lane.bars]


def only_bar(record: EventRecord, *, now: datetime = NOW, view: View = HOUR_VIEW) -> Bar:
    [bar] = bars(build([record], now=now, view=view))
    return bar


# --- one event -----------------------------------------------------------------------------------


def test_a_scheduled_event_has_its_notice_up_to_not_before_and_its_impact_after() -> None:
    timeline = build([a_record(duration=6 * MINUTE)], now=NOW, view=HOUR_VIEW)

    [bar] = bars(timeline)
    assert bar.notice is not None
    assert bar.impact is not None
    assert bar.notice.width == pytest.approx(25)
    assert bar.notice.x + bar.notice.width == pytest.approx(bar.impact.x)
    assert bar.impact.width == pytest.approx(10)
    assert bar.not_before == pytest.approx(bar.impact.x)
    assert bar.is_planned
    [[placed]] = [lane.bars for lane in timeline.lanes]
    assert placed.href == f"/events/{A}"


def test_an_approved_event_jumps_ahead_to_where_it_started() -> None:
    before = a_record()
    approval = Approval(by="vm:web", at=NOON - 14 * MINUTE)
    after = a_record(status=EventStatus.STARTED, approval=approval)

    waiting, started = only_bar(before), only_bar(after)

    assert waiting.impact is not None
    assert started.impact is not None
    assert started.impact.x < waiting.impact.x - 20
    assert started.approved_at == pytest.approx(started.impact.x)
    assert started.not_before is None
    assert any("Approved by vm:web" in line for line in started.details)


def test_a_started_event_reaches_to_now_and_goes_on_growing() -> None:
    started = a_record(status=EventStatus.STARTED)

    now, later = only_bar(started), only_bar(started, now=NOW + 5 * MINUTE)

    assert now.impact is not None
    assert later.impact is not None
    assert later.impact.width > now.impact.width


def test_an_event_that_is_held_back_beyond_its_not_before_waits_until_now() -> None:
    bar = only_bar(a_record(), now=NOON + 5 * MINUTE)

    assert bar.notice is not None
    assert bar.not_before is not None
    assert bar.notice.x + bar.notice.width > bar.not_before + 5


def test_a_completed_event_ends_where_it_ended() -> None:
    over = replace(a_record(status=EventStatus.COMPLETED), ended_at=NOON - 11 * MINUTE)

    bar = only_bar(over)

    assert bar.impact is not None
    assert bar.impact.width == pytest.approx(5)
    assert not bar.is_planned


def test_a_canceled_event_has_no_impact() -> None:
    called_off = replace(a_record(status=EventStatus.CANCELED), ended_at=NOON - 12 * MINUTE)

    bar = only_bar(called_off)

    assert bar.impact is None
    assert bar.notice is not None
    assert bar.notice.width == pytest.approx(5)


def test_work_that_nobody_was_told_of_has_no_notice() -> None:
    bar = only_bar(a_record(status=EventStatus.STARTED, announced=False))

    assert bar.notice is None
    assert any("Not announced" in line for line in bar.details)


def test_the_shortest_impact_is_wide_enough_to_see_in_a_month() -> None:
    bar = only_bar(a_record(duration=SECOND), view=View(zoom=Zoom.MONTH))

    assert bar.impact is not None
    assert bar.impact.width > 0.5


def test_what_lies_outside_the_window_is_not_drawn() -> None:
    old = replace(a_record(status=EventStatus.COMPLETED), ended_at=NOON)

    assert build([old], now=NOON + DAY, view=HOUR_VIEW).shown == 0
    assert build([old], now=NOON + DAY, view=View(zoom=Zoom.HOUR, at=NOON)).shown == 1


def test_a_long_name_is_cut_in_the_bar_and_whole_in_its_details() -> None:
    name = "<script>" + "x" * 200

    bar = only_bar(a_record(resources=[name, "b"]))

    assert len(bar.label) <= 24
    assert bar.label.endswith("… +1")
    assert f"Reboot of {name}, b" in bar.details


# --- many ----------------------------------------------------------------------------------------


def test_five_events_are_drawn_each_for_itself_with_its_name() -> None:
    timeline = build([a_record(n, scope=f"vm/{n}") for n in range(5)], now=NOW)

    assert all(lane.size is HIGH for lane in timeline.lanes)
    assert [lane.heading.key for lane in timeline.lanes] == [f"vm/{n}" for n in range(5)]
    assert all(bar.label == "Reboot vm1" for bar in bars(timeline))


def test_five_hundred_events_are_grouped_by_scope_and_drawn_low() -> None:
    records = [a_record(n, scope=f"vmss/{n % 200:03}") for n in range(500)]

    timeline = build(records, now=NOW)

    assert timeline.shown == 500
    assert len(timeline.lanes) == 200
    assert [lane.size for lane in timeline.lanes] == [HIGH] * NEAR + [LOW] * (200 - NEAR)
    assert all(lane.height < 50 for lane in timeline.lanes[NEAR:])


def test_events_of_one_scope_that_look_alike_are_drawn_as_one_which_leads_to_each() -> None:
    records = [a_record(n, type=EventType.TERMINATE, resources=[f"vm{n}"]) for n in range(100)]

    [[(_, href, together)]] = [lane.bars for lane in build(records, now=NOW, view=HOUR_VIEW).lanes]
    apart = build(records, now=NOW, view=replace(HOUR_VIEW, scope=ScopeId("vm/web")))

    assert together.label == "Terminate × 100"
    assert len(together.events) == 100
    assert href == "/?zoom=1h&scope=vm%2Fweb"
    assert len(bars(apart)) == 100


def test_a_few_events_of_one_scope_stay_apart() -> None:
    timeline = build([a_record(n) for n in range(MOST_ROWS)], now=NOW)

    assert len(bars(timeline)) == MOST_ROWS
    assert all(lane.size is HIGH for lane in timeline.lanes)


def test_bars_that_are_as_long_as_each_other_are_in_order_of_type_whatever_their_ids() -> None:
    types = [EventType.REBOOT, EventType.FREEZE]
    records = [a_record(1 + n, scope="vm/a", type=type_) for n, type_ in enumerate(types)]
    records += [a_record(9 - n, scope="vm/b", type=type_) for n, type_ in enumerate(types)]

    timeline = build(records, now=NOW, view=View(zoom=Zoom.QUARTER, at=NOON - 13 * MINUTE))

    orders = [[placed.bar.type for placed in lane.bars] for lane in timeline.lanes]
    assert orders == [["Freeze", "Reboot"]] * 2


def test_only_the_scope_asked_for_is_drawn() -> None:
    records = [a_record(1, scope="vm/a"), a_record(2, scope="vm/b")]

    timeline = build(records, now=NOW, view=View(scope=ScopeId("vm/b")))

    assert [lane.heading.key for lane in timeline.lanes] == ["vm/b"]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 90),
            st.integers(0, 2000),
            st.sampled_from(["", "v", "a" * 60]),
        ),
        max_size=CROWDED,
    ),
    st.sampled_from(Zoom),
)
def test_bars_and_their_words_stay_in_the_picture_and_off_each_other(
    made: list[tuple[int, int, str]], zoom: Zoom
) -> None:
    records = [
        a_record(
            number,
            resources=[name],
            created_at=NOW - age * MINUTE,
            not_before=NOW + lead * MINUTE,
            duration=MINUTE,
        )
        for number, (age, lead, name) in enumerate(made)
    ]

    drawn = bars(build(records, now=NOW, view=View(zoom=zoom, scope=ScopeId("vm/web"))))

    assert sum(len(bar.events) for bar in drawn) == len(records)
    assert all(bar.left >= 0 and bar.right <= 100.001 for bar in drawn)
    for row in packed(drawn):
        assert all(one.reach()[1] <= other.reach()[0] for one, other in pairwise(row))


# --- the window ----------------------------------------------------------------------------------


@pytest.mark.parametrize("zoom", Zoom)
def test_now_stands_where_it_should_and_ticks_are_few_and_in_order(zoom: Zoom) -> None:
    timeline = build([], now=NOW, view=View(zoom=zoom))

    assert 100 * NOW_STANDS_AT <= timeline.now_x < 100 * NOW_STANDS_AT + 2.6
    found = ticks(timeline.window)
    assert 4 <= len(found) <= 10
    assert all(0 <= tick.x < 100 for tick in found)
    assert [tick.x for tick in found] == sorted(tick.x for tick in found)
    # A phone shows the words of those that are not minor, and has room for all of each.
    assert all(5 <= tick.x <= 95 for tick in found if not tick.is_minor)


def test_the_window_stands_still_for_a_while() -> None:
    one = build([], now=NOON, view=HOUR_VIEW)
    other = build([], now=NOON + 20 * SECOND, view=HOUR_VIEW)

    assert one.window == other.window
    assert one.now_x < other.now_x


@pytest.mark.parametrize(
    ("leads", "zoom"),
    [
        ([], Zoom.HOUR),
        ([15 * MINUTE], Zoom.HOUR),
        ([HOUR], Zoom.THREE_HOURS),
        ([2 * HOUR], Zoom.SIX_HOURS),
        ([3 * DAY], Zoom.WEEK),
        ([10 * MINUTE] * 5 + [7 * DAY], Zoom.HOUR),
        ([10 * MINUTE] + [7 * DAY] * 20, Zoom.HOUR),
        ([5 * MINUTE, 3 * HOUR], Zoom.QUARTER),
        ([-MINUTE], Zoom.QUARTER),
        ([400 * DAY], Zoom.MONTH),
    ],
)
def test_without_a_wish_the_zoom_shows_the_next_event_to_start(
    leads: list[timedelta], zoom: Zoom
) -> None:
    records = [a_record(n, not_before=NOW + lead) for n, lead in enumerate(leads)]

    assert fitting(records, now=NOW) is zoom


def test_what_has_started_or_is_over_does_not_choose_the_zoom() -> None:
    over = replace(a_record(1, not_before=NOW, status=EventStatus.CANCELED), ended_at=NOW)
    records = [over, a_record(2, status=EventStatus.STARTED), a_record(3, not_before=NOW + 3 * DAY)]

    assert fitting(records, now=NOW) is Zoom.WEEK


def test_a_view_is_read_back_from_its_own_query() -> None:
    view = View(zoom=Zoom.DAY, at=NOON, scope=ScopeId("vmss/a&b/0"))
    opened = replace(view, opened=frozenset({"vmss/a&b", "vmss/c"}))
    links = build([], now=NOW, view=view)

    assert view.address() == "/?zoom=1d&at=2026-01-05T12%3A00%3A00Z&scope=vmss%2Fa%26b%2F0"
    for one in (view, opened):
        assert View.read(Form(parse_qsl(one.address().removeprefix("/").removeprefix("?")))) == one
    assert not links.follows
    assert links.back_to_now == "/?zoom=1d&scope=vmss%2Fa%26b%2F0"
    assert "at=2026-01-05T00%3A00%3A00Z" in links.earlier
    assert [choice.zoom for choice in links.zooms if choice.is_current] == ["1d"]


@pytest.mark.parametrize(
    "at", ["", "soon", "0001-01-01", "9999-12-31T23:59:59-14:00", "2026-13-01"]
)
def test_an_address_that_makes_no_sense_shows_the_usual_picture(at: str) -> None:
    typed = {"zoom": "century", "at": at, "scope": "", "open": ""}

    assert View.read(Form(typed.items())) == View()


def test_every_zoom_has_a_span_and_they_grow() -> None:
    assert list(SPANS) == list(Zoom)
    assert list(SPANS.values()) == sorted(SPANS.values())


# --- what stays the same -------------------------------------------------------------------------


def test_a_change_of_one_scope_draws_its_lane_anew_and_no_other() -> None:
    sketches = Sketches()
    records = [a_record(n, scope=f"vmss/{n % 200:03}") for n in range(500)]
    before = build(records, now=NOW, sketches=sketches)
    records[7] = replace(records[7], event=replace(records[7].event, description="another"))

    after = build(records, now=NOW + SECOND, sketches=sketches)

    anew = [
        new.heading.key
        for old, new in zip(before.lanes, after.lanes, strict=True)
        if new is not old
    ]
    assert anew == ["vmss/007"]
    assert after.now_x > before.now_x


def test_a_lane_that_grows_leaves_those_below_it_as_they_are() -> None:
    sketches = Sketches()
    records = [a_record(1, scope="vm/a"), a_record(2, scope="vm/b")]
    [a, b] = build(records, now=NOW, sketches=sketches).lanes

    after = build([*records, a_record(3, scope="vm/a")], now=NOW, sketches=sketches)

    assert after.lanes[0].height == a.height + HIGH.row
    assert after.lanes[1] is b


def test_kept_lanes_make_the_same_picture_as_new_ones() -> None:
    """Whatever was looked at before: other times, zooms and scopes."""
    sketches = Sketches()
    records = [
        a_record(1),
        a_record(2, status=EventStatus.STARTED),
        replace(a_record(3, status=EventStatus.COMPLETED), ended_at=NOON - 11 * MINUTE),
        a_record(4, scope="vm/b"),
    ]
    views = [View(zoom=zoom, scope=scope) for zoom in Zoom for scope in (None, ScopeId("vm/b"))]
    looks = [(view, NOW + step * MINUTE) for step in (0, 3, 12, 60, 3) for view in views]

    for view, now in looks:
        kept = build(records, now=now, view=view, sketches=sketches)
        fresh = build(records, now=now, view=view)
        assert [(lane.heading, lane.bars) for lane in kept.lanes] == [
            (lane.heading, lane.bars) for lane in fresh.lanes
        ]


def test_no_more_lanes_are_kept_than_there_is_room_for() -> None:
    sketches = Sketches(limit=1)
    records = [a_record(1, scope="vm/a"), a_record(2, scope="vm/b")]
    [a, b] = build(records, now=NOW, sketches=sketches).lanes

    again = build(reversed(records), now=NOW, sketches=sketches)

    assert again.lanes[0] is not a
    assert [lane.bars for lane in again.lanes] == [a.bars, b.bars]
