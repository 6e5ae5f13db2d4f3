"""The parts of the benchmark that measure nothing: figures, parsing, table, plot, wiring."""

import json
import math
import os
import re
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from xml.etree import ElementTree as ET

import pytest

from benchmarks import exchange, groups, journey, page, plot, polling, product, usage, wrk
from benchmarks.bench import NotOfferedError
from benchmarks.exchange import BrokenExchangeError
from benchmarks.figures import (
    Line,
    Spread,
    Verdict,
    at_least,
    at_most,
    measured,
    percentile,
    ratios,
)
from benchmarks.polling import Subject
from benchmarks.smoke import has_collapsed

ROOT = Path(__file__).resolve().parents[2]
WRK = """Running 2s test @ http://127.0.0.1:1/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.27us    1.01ms  22.09ms   97.65%
  246810 requests in 2.00s, 100.00MB read
Requests/sec: 123405.00
Transfer/sec:     50.00MB
"""


def a_line(
    value: float = 2.0, *, row: str = "P1", what: str = "keep-alive poll", note: str = ""
) -> Line:
    return measured(
        row, what, Spread.of([value / 2, value, value * 2]), unit="×", goal=at_least(1.0), note=note
    )


def a_line_without_a_figure(verdict: Verdict = Verdict.NOT_OFFERED) -> Line:
    return Line(row="P3", what="", verdict=verdict, note="the server does not offer it")


# ── figures ──────────────────────────────────────────────────────────────────────────────────


def test_a_ratio_is_taken_within_each_round_and_its_median_counts() -> None:
    spread = ratios([10.0, 200.0, 30.0], [10.0, 100.0, 10.0])

    assert spread == Spread(2.0, 1.0, 3.0)


def test_rounds_of_two_sides_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratios([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 50), (90, 90), (99, 99), (100, 100), (0, 1)]
)
def test_a_percentile_is_a_value_that_was_seen(percent: float, expected: int) -> None:
    assert percentile(range(100, 0, -1), percent) == expected


def test_the_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 99) == 7.0


def test_the_median_decides_whether_a_goal_is_met() -> None:
    noisy = Spread(median=1.0, low=0.5, high=3.0)

    assert measured("P1", "", noisy, unit="×", goal=at_least(1.0)).verdict is Verdict.MET
    assert measured("P1", "", noisy, unit="×", goal=at_least(1.01)).verdict is Verdict.MISSED
    assert measured("P4", "", noisy, unit="×", goal=at_most(1.0)).verdict is Verdict.MET
    assert measured("P4", "", noisy, unit="×", goal=at_most(0.99)).verdict is Verdict.MISSED
    assert measured("P4", "", noisy, unit="×").verdict is Verdict.SHOWN


def test_a_margin_above_one_is_better_than_asked_for_on_either_side() -> None:
    assert at_least(2).margin(4) == 2
    assert at_least(2).margin(1) == 0.5
    assert at_most(2).margin(4) == 0.5
    assert at_most(2).margin(1) == 2
    assert at_most(2).margin(0) == math.inf


def test_only_a_tenth_of_the_goal_is_a_collapse() -> None:
    assert has_collapsed(a_line(0.09))
    assert not has_collapsed(a_line(0.11))
    assert not has_collapsed(a_line_without_a_figure())


def test_the_first_round_is_thrown_away_and_turns_are_taken() -> None:
    subjects = [Subject("a", [], 1), Subject("b", [], 2)]
    seen: list[str] = []

    def measure(subject: Subject) -> float:
        seen.append(subject.name)
        return float(len(seen))

    figures = polling.alternate(subjects, 2, measure)

    assert seen == ["a", "b", "b", "a", "a", "b"]
    assert figures == {"a": [4.0, 5.0], "b": [3.0, 6.0]}


# ── parsing ──────────────────────────────────────────────────────────────────────────────────


def test_requests_are_read_from_what_wrk_prints() -> None:
    assert wrk.parse(WRK) == wrk.Polled(requests=246810, failed=0)


def test_refusals_and_broken_connections_count_as_failed() -> None:
    trouble = (
        "  Socket errors: connect 1, read 2, write 3, timeout 4\n  Non-2xx or 3xx responses: 5"
    )

    assert wrk.parse(WRK + trouble).failed == 11


def test_output_without_a_count_is_refused() -> None:
    with pytest.raises(BrokenExchangeError):
        wrk.parse("unable to connect")


def test_an_answer_is_whole_when_its_length_has_come() -> None:
    sent = b"HTTP/1.1 200 OK\r\nCONTENT-length: 5\r\nETag: x\r\n\r\nhello"

    early = [exchange.whole(sent[:size]) for size in range(len(sent))]
    answer = exchange.whole(sent + b"HTTP/1.1 400")

    assert set(early) == {None}
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"hello")


def test_an_answer_without_a_length_ends_with_its_head() -> None:
    answer = exchange.whole(b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n")

    assert answer is not None
    assert (answer.status, answer.body) == (304, b"")


@pytest.mark.parametrize("kind", ["alone", "grouped", "together"])
def test_the_fleets_are_ones_the_product_takes(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(product.fleet_of(3, kind=kind))

    done = subprocess.run(
        [sys.executable, "-m", "forewarned", "fleet", "check", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_addresses_are_those_the_range_gives_in_order() -> None:
    assert product.addresses(3) == ["127.16.0.1", "127.16.0.2", "127.16.0.3"]
    assert product.addresses(2, apart=256) == ["127.16.0.1", "127.16.1.1"]


@pytest.mark.skipif(not usage.is_readable(), reason="there is no /proc")
def test_a_process_and_what_it_started_are_one_family() -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        found = usage.family(os.getpid())
        child.communicate()

    assert found[0] == os.getpid()
    assert child.pid in found
    assert usage.processor_seconds([os.getpid()]) > 0
    assert usage.memory([os.getpid()]) > 1_000_000


# ── a journey, step by step ───────────────────────────────────────────────────────────────────


def test_the_functions_that_a_journey_comes_by_are_there() -> None:
    assert [step for step in journey.STEPS if not callable(resolve_name(step.ends_at))] == []


def test_a_step_ends_with_the_first_call_since_the_step_before() -> None:
    # Each function is called before the journey as well, and again after it.
    calls = {
        step.ends_at: [number * 0.1, 10.0 + number, 20.0 + number]
        for number, step in enumerate(journey.STEPS, start=1)
    }

    taken = journey.spans(calls, sent=10.0, heard=17.5)

    assert taken == [1.0] * len(journey.STEPS) + [0.5]


def test_a_program_leaves_behind_when_its_functions_were_called(tmp_path: Path) -> None:
    name = "json.decoder:JSONDecoder.decode"
    noting = {
        "PYTHONPATH": str(ROOT / "benchmarks" / "marks"),
        "NOTED_CALLS": json.dumps({"json.tool": [name], "json.other": ["json.other:Un.known"]}),
        "NOTED_IN": str(tmp_path),
    }
    before = time.perf_counter()

    done = subprocess.run(
        [sys.executable, "-m", "json.tool"],
        env={**os.environ, **noting},
        input=b"[1]",
        capture_output=True,
        check=True,
    )

    [(noted, at)] = json.loads((tmp_path / "json.tool.marks").read_text())
    assert json.loads(done.stdout) == [1]
    assert noted == name
    assert before < at < time.perf_counter()


# ── the table, the page and the plot ─────────────────────────────────────────────────────────


def test_a_row_that_was_not_run_says_why_and_has_no_figure() -> None:
    written = page.markdown([a_line_without_a_figure()])

    row = written.splitlines()[-1]
    assert "| – |" in row
    assert "not offered" in row
    assert "the server does not offer it" in row


def test_every_row_of_the_table_has_as_many_cells() -> None:
    written = page.markdown([a_line(note="a | b\nc"), a_line_without_a_figure()])

    cells = {len(re.split(r"(?<!\\)\|", row)) for row in written.splitlines()}
    assert cells == {9}


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    written = (
        "# Scale\n\n<!-- bench server: begin -->\nolder\n<!-- bench server: end -->\n"
        "<!-- bench nodes: begin -->\n{}\n<!-- bench nodes: end -->\n\nThe end.\n"
    )

    after = page.refresh(written.format("old"), "nodes", "new")

    assert after == written.format("new")
    assert page.refresh(after, "nodes", "new") == after


def test_a_page_without_marks_is_left_alone() -> None:
    with pytest.raises(ValueError, match="bench nodes: begin"):
        page.refresh("# Scale\n", "nodes", "new")


@pytest.mark.parametrize("family", groups.FAMILIES)
def test_the_page_on_scale_has_the_marks(family: str) -> None:
    assert page.refresh((ROOT / "docs" / "scale.md").read_text(), family, "new")


def test_every_row_is_of_one_family() -> None:
    assert sorted(chain(*groups.FAMILIES.values())) == sorted(groups.ROWS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.98765, "0.99 ×"), (12.345, "12.3 ×"), (29340.4, "29,340 ×"), (0.0, "0.00 ×")],
)
def test_figures_have_the_digits_that_mean_something(value: float, expected: str) -> None:
    assert page.number(value, "×") == expected


def test_the_plot_is_well_formed_and_escapes_what_it_says() -> None:
    drawn = plot.svg([a_line(what="p99 < 3 & more"), a_line_without_a_figure()])

    tree = ET.fromstring(drawn)  # noqa: S314  we have written it ourselves
    texts = [text.text or "" for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert any("p99 < 3 & more" in text for text in texts)
    assert "prefers-color-scheme: dark" in drawn


def test_a_bar_lies_right_of_the_goal_exactly_if_it_is_met() -> None:
    assert plot.place(0.5) < plot.place(1.0) < plot.place(2.0)
    assert plot.place(1e9) == plot.place(math.inf) <= plot.WIDTH


# ── wiring ───────────────────────────────────────────────────────────────────────────────────


def test_the_smoke_test_is_a_part_of_make_test() -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert "-m benchmarks.smoke" in planned


def test_the_benchmark_imports_nothing_of_the_product() -> None:
    sources = [path.read_text() for path in (ROOT / "benchmarks").rglob("*.py")]

    assert [s for s in sources if re.search(r"^\s*(from|import) forewarned", s, re.MULTILINE)] == []


def test_what_is_not_offered_is_not_a_failure() -> None:
    from benchmarks import groups

    def refuse(*_: object) -> list[Line]:
        raise NotOfferedError("not yet")

    group = groups.Group(rows=("P3",), measure=refuse, minutes=1)  # type: ignore[arg-type]  # a list will do

    (line,) = groups.measure(group, None, {"P3"})  # type: ignore[arg-type]  # never looked at

    assert (line.row, line.verdict, line.note) == ("P3", Verdict.NOT_OFFERED, "not yet")
