"""Nodes of the version before and of this one, on one database."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forewarned.storage.postgres import migrate
from tests.cluster import requests
from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.nodes import Node, PreloadedNode, fleet_of
from tests.cluster.waiting import wait_until
from tests.postgresql.databases import Database

ROOT = Path(__file__).parents[2]
VMS = addresses(6)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _code_before(folder: Path) -> Path:
    """The newest code that knows only the schema before this one's, from the history."""
    newest = migrate.migrations()[-1].number
    # By its number: the file may have been renamed since.
    step = f"src/forewarned/storage/sql/postgres/{newest:04}_*.sql"
    [*_, added] = _git("log", "--diff-filter=A", "--format=%H", "--", step).split() or [""]
    if not added or not _git("rev-parse", "--verify", "--quiet", f"{added}^"):
        pytest.skip("the history of this checkout has no version before this one")
    archive = folder / "before.tar"
    _git("archive", f"--output={archive}", f"{added}^", "src")
    subprocess.run(["tar", "-xf", str(archive), "-C", str(folder)], check=True)
    return folder / "src"


def _speaks(code: Path) -> int:
    """The newest schema that this code knows."""
    asked = (
        "from forewarned.storage.postgres import migrate; print(migrate.migrations()[-1].number)"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, "PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_nodes_of_the_version_before_serve_on_while_this_one_takes_over(
    empty_database: Database, tmp_path: Path
) -> None:
    """I7, I14, I23: what one version has scheduled or approved, the other shows."""
    code = _code_before(tmp_path)
    known = migrate.migrations()[-1].number
    assert _speaks(code) == known - 1
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(fleet_of(VMS))
    old = Node(
        name="old",
        store=empty_database.url,
        folder=tmp_path / "old",
        flags=("--workers=0", f"--fleet={fleet}"),
        environment={"PYTHONPATH": str(code)},
    )
    new = PreloadedNode(
        name="new", store=empty_database.url, folder=tmp_path / "new", flags=("--workers=0",)
    )
    where = {node.name: node.metadata for node in (old, new)}
    try:
        old.start()
        with IncarnationWatch({"old": old.metadata}, VMS, interval=0.3) as watch:
            watch.wait_for_rounds()
            before = requests.schedule(old, "vm-0").json["events"][0]["event_id"]
            # It migrates the database while the old one serves.
            new.start()
            watch.wait_for_rounds()
        with IncarnationWatch(where, VMS, interval=0.3) as watch:
            watch.wait_for_rounds()
            after = requests.schedule(new, "vm-0").json["events"][0]["event_id"]
            late = requests.schedule(old, "vm-1").json["events"][0]["event_id"]
            approved = requests.approve_patiently(new, before, address=VMS["vm-0"])
            for node in (old, new):
                wait_until(lambda node=node: _shows(node, "vm-0", {before, after}))  # type: ignore[misc]
                wait_until(lambda node=node: _shows(node, "vm-1", {late}))  # type: ignore[misc]
            watch.wait_for_rounds()
    finally:
        old.stop()
        new.stop()

    assert approved.status == 200
    assert empty_database.ask("SELECT schema, oldest_code FROM store") == [(known, known - 1)]


def _shows(node: Node, vm: str, event_ids: set[str]) -> bool:
    return set(requests.events_of(requests.poll(node, address=VMS[vm]))) >= event_ids
