"""`forewarned history export`."""

import csv
import io
import json
from pathlib import Path

from forewarned.storage.connection_threads import unchanged
from tests.cli.served import Served
from tests.control.v1.history.export_memory import FILL


def test_history_is_written_into_a_file_oldest_first(served: Served, tmp_path: Path) -> None:
    served.schedule("web")
    file = tmp_path / "history.jsonl"

    printed = served.run("history", "export", "--output", str(file))

    assert printed.exit_code == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows[-1]["action"] == "scheduled"
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_not_wanted_is_left_out(served: Served) -> None:
    event = served.schedule("web")

    printed = served.run("history", "export", "--format", "csv", "--event", event[:8])

    rows = list(csv.DictReader(io.StringIO(printed.stdout)))
    assert [(row["action"], row["resources"]) for row in rows] == [("scheduled", "web")]


def test_a_file_that_can_not_be_written_is_said(served: Served, tmp_path: Path) -> None:
    refused = served.run("history", "export", "--output", str(tmp_path / "no" / "file"))

    assert refused.exit_code == 1
    assert "can't write" in refused.stderr


def test_what_the_server_refuses_leaves_no_file(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    served.steered.store.is_down = True

    refused = served.run("history", "export", "--output", str(file))
    served.steered.store.is_down = False

    assert refused.exit_code == 4
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_breaks_off_leaves_no_file(served: Served, tmp_path: Path) -> None:
    store, file = served.steered.store, tmp_path / "history.jsonl"
    filling = store._writer.run(lambda tx: tx._writable.write(FILL.format(rows=3000)), unchanged)
    served.start(filling).result()
    store.reads_left = 2

    refused = served.run("history", "export", "--output", str(file))
    store.reads_left, store.is_down = None, False

    assert refused.exit_code == 4
    assert "closed the connection before its response was complete" in refused.stderr
    assert list(tmp_path.iterdir()) == []
