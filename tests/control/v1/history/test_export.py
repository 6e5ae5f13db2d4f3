"""Exports: all of history, as lines of JSON or as CSV, in the same memory however much there is."""

import csv
import io
import json
import subprocess
import sys

import pytest

from tests.control.control_api import ControlApi

KIB = 1024
ALLOWED = 3 * KIB
"""KiB that an export may take, of any size: a page of rows in all its forms, and what Python has not
given back yet."""


async def lives(control: ControlApi, *vms: str) -> None:
    await control.switch_on(*vms)
    for vm in vms:
        event = await control.schedule("Reboot", vm)
        await control.post(f"/v1/events/{event['event_id']}/approve")
        await control.post(f"/v1/events/{event['event_id']}/complete")


async def exported(control: ControlApi, **query: str) -> str:
    answer = await control.http.get("/v1/history/export", params=query)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_lines_are_the_rows_of_the_listing_oldest_first(control: ControlApi) -> None:
    await lives(control, "web", "report")

    lines = [json.loads(line) for line in (await exported(control)).splitlines()]

    listed = (await control.get("/v1/history", limit=1000))["history"]
    assert lines == listed[::-1]


async def test_filters_are_those_of_the_listing(control: ControlApi) -> None:
    await lives(control, "web", "report")
    query = {"vm": "web", "action": "started"}

    lines = [json.loads(line) for line in (await exported(control, **query)).splitlines()]

    listed = (await control.get("/v1/history", **query))["history"]
    assert lines == listed
    assert len(lines) == 1


async def test_there_is_a_file_for_spreadsheets_with_the_same_rows(control: ControlApi) -> None:
    await lives(control, "web")

    answer = await control.http.get("/v1/history/export", params={"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert 'filename="history.csv"' in answer.headers["Content-Disposition"]
    lines = [json.loads(line) for line in (await exported(control)).splitlines()]
    assert [row["action"] for row in rows] == [line["action"] for line in lines]
    assert [row["at"] for row in rows] == [line["at"] for line in lines]
    assert rows[-1]["resources"] == "web"


@pytest.mark.parametrize("reason", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
async def test_no_cell_is_a_formula_and_lines_have_the_text_as_it_is(
    control: ControlApi, reason: str
) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")
    await control.post(f"/v1/events/{event['event_id']}/cancel", {"reason": reason})

    rows = list(csv.DictReader(io.StringIO(await exported(control, format="csv"), newline="")))
    lines = [json.loads(line) for line in (await exported(control)).splitlines()]

    assert rows[-1]["cause"] == f"'{reason}"
    assert lines[-1]["cause"] == reason


@pytest.mark.parametrize(
    ("query", "field"),
    [("format=xml", "format"), ("limit=5", "limit"), ("event=x", "event"), ("since=x", "since")],
)
async def test_what_it_can_not_read_is_refused(control: ControlApi, query: str, field: str) -> None:
    status, error = await control.refused("GET", f"/v1/history/export?{query}")

    assert (status, error["field"]) == (400, field)


async def test_a_store_that_is_unavailable_is_told_before_anything_is_sent(
    control: ControlApi,
) -> None:
    control.store.is_down = True

    status, error = await control.refused("GET", "/v1/history/export")

    assert (status, error["code"]) == (503, "store_unavailable")


@pytest.mark.parametrize("rows", [50_000, pytest.param(1_000_000, marks=pytest.mark.thorough)])
def test_an_export_of_any_size_takes_the_same_memory(rows: int) -> None:
    # The shorter one first: the next has what memory it leaves behind.
    formats = ("csv", "jsonl")

    ran = subprocess.run(
        [sys.executable, "-m", "tests.control.v1.history.export_memory", str(rows), *formats],
        capture_output=True,
        text=True,
        check=True,
    )

    measured = [line.split() for line in ran.stdout.splitlines()]
    assert [format_ for format_, _, _ in measured] == [*formats]
    for format_, lines, grown in measured:
        assert int(lines) >= rows, format_
        assert int(grown) < ALLOWED, format_
