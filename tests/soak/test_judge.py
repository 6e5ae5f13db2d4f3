"""The judge of a soak: flat is what comes back to where it was, and all else is found."""

import math
from collections.abc import Callable

import pytest

from tools.soak.judge import LIMITS, MAX_WAL, MB, Limit, judged, verdict
from tools.soak.run import Plan, Report
from tools.soak.tally import Tally

MINUTES = 60
LIMIT = Limit(share=0.05, room=2.0, why="a test")


def series(value: Callable[[int], float]) -> list[float]:
    return [value(minute) for minute in range(MINUTES)]


def samples(name: str, value: Callable[[int], float]) -> list[dict[str, float]]:
    return [{name: each} for each in series(value)]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda _: 100.0, id="constant"),
        pytest.param(lambda minute: 100 + 3 * math.sin(minute), id="a wave"),
        pytest.param(lambda minute: 100.0 + minute % 5 * 20, id="a sawtooth"),
        pytest.param(lambda minute: 200.0 - minute, id="falling"),
        pytest.param(lambda minute: 100.0 + 900 * (minute == 40), id="one peak"),
        pytest.param(lambda _: 0.0, id="nothing at all"),
    ],
)
def test_what_comes_back_to_where_it_was_is_flat(value: Callable[[int], float]) -> None:
    assert verdict("x/y", series(value), LIMIT).fault == ""


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda minute: 100.0 + minute, id="a line"),
        pytest.param(lambda minute: 100.0 + minute + minute % 5 * 20, id="a rising sawtooth"),
        pytest.param(lambda minute: 100.0 + 20 * (minute > 30), id="a step that stays"),
        pytest.param(float, id="from nothing"),
        pytest.param(lambda minute: 100 * 1.01**minute, id="ever faster"),
    ],
)
def test_what_is_higher_at_the_end_has_grown(value: Callable[[int], float]) -> None:
    assert verdict("x/y", series(value), LIMIT).fault == "it has grown"


def test_growth_is_measured_between_the_medians_of_two_quarters() -> None:
    found = verdict("x/y", [1.0, 9.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 8.0, 5.0], LIMIT)

    assert (found.first, found.last, found.highest) == (2.0, 5.0, 9.0)
    assert found.growth == 1.5


@pytest.mark.parametrize(("first", "last"), [(10.0, 12.0), (100.0, 105.0)])
def test_a_series_may_grow_by_a_share_or_by_some_room_whichever_is_more(
    first: float, last: float
) -> None:
    allowed = verdict("x/y", [first] * 10 + [last] * 10, LIMIT)
    too_much = verdict("x/y", [first] * 10 + [last + 0.1] * 10, LIMIT)

    assert (allowed.fault, too_much.fault) == ("", "it has grown")


def test_the_warm_up_is_left_out() -> None:
    filling = samples("memory/a writer", lambda minute: min(minute, 12) * 10.0 * MB)

    [found] = judged(filling)

    assert (found.first, found.last, found.fault) == (120 * MB, 120 * MB, "")


def test_a_limit_that_may_never_be_exceeded_is_one_for_every_sample() -> None:
    [found] = judged(samples("wal/on disk", lambda minute: MAX_WAL + 1.0 * (minute == 50)))
    [within] = judged(samples("wal/on disk", lambda minute: MAX_WAL * minute / MINUTES))

    assert found.fault == "it was above its limit"
    assert within.fault == ""


def test_a_retention_that_has_removed_nothing_is_found() -> None:
    [idle] = judged(samples("removed/history", lambda _: 0.0))
    [at_work] = judged(samples("removed/history", lambda minute: minute * 100.0))

    assert (idle.fault, at_work.fault) == ("nothing was removed", "")


def test_a_small_table_that_gains_two_rows_a_minute_is_found_by_its_rows_and_not_by_its_size() -> (
    None
):
    [size] = judged(samples("table/notes", lambda minute: 2 * 200.0 * minute))
    [rows] = judged(samples("rows/notes", lambda minute: 2.0 * minute))

    assert (size.fault, rows.fault) == ("", "it has grown")


def test_a_series_that_begins_late_counts_as_nothing_before() -> None:
    late = [{"descriptors/a writer": 20.0} if minute > 40 else {} for minute in range(MINUTES)]

    [found] = judged(late)

    assert (found.first, found.last, found.fault) == (0, 20, "it has grown")


def test_what_has_no_limit_is_not_judged_and_a_short_run_is_not_either() -> None:
    assert judged(samples("p99/poll", lambda minute: 2.0**minute)) == []
    assert judged(samples("memory/a writer", lambda minute: 2.0**minute)[:19]) == []


def test_every_limit_has_a_reason_and_lets_something_fail() -> None:
    unbounded = {
        kind
        for kind, limit in LIMITS.items()
        if limit.share is None and limit.most is None and limit.least is None
    }

    assert unbounded == set()
    assert all(limit.why for limit in LIMITS.values())


def test_a_run_fails_for_what_has_grown_for_a_broken_law_and_for_an_error_in_a_log() -> None:
    tally = Tally()
    report = Report(plan=Plan(), tally=tally)
    sound = report.faults

    report.verdicts = judged(samples("queue/open events", lambda minute: minute * 10.0))
    tally.broke("I7: vm-1 read 3 after 4")
    report.log = ["2026-11-17 20:00:00Z WARNING late", "2026-11-17 20:00:00Z ERROR   it broke"]

    assert sound == []
    assert report.faults == ["queue/open events: it has grown", tally.broken[0], report.log[1]]


def test_an_hour_has_one_event_for_each_vm_and_removes_history_ten_minutes_old() -> None:
    plan = Plan()

    assert round(plan.events * 3600) == plan.vms
    assert plan.retention.total_seconds() == 600
