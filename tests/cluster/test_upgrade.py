"""Nodes of the version before and of this one, on one database."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from forewarned.storage.postgres import migrate
from tests.cluster import requests
from tests.cluster.incarnation_watch import addresses
from tests.cluster.nodes import Node, PreloadedNode, fleet_of, stop_all
from tests.cluster.under_watch import LOAD, under_watch
from tests.cluster.waiting import wait_until
from tests.packages import give_up
from tests.postgresql.databases import Database

ROOT = Path(__file__).parents[2]
VMS = addresses(6)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _wheel_before(folder: Path) -> Path:
    """What was installed from the newest code that knows only the schema before this one's."""
    newest = migrate.migrations()[-1].number
    # By its number: the file may have been renamed since.
    step = f"src/forewarned/storage/sql/postgres/{newest:04}_*.sql"
    [*_, added] = _git("log", "--diff-filter=A", "--format=%H", "--", step).split() or [""]
    # A step that was not committed yet follows on what was.
    before = f"{added}^" if added else "HEAD"
    if not _git("rev-parse", "--verify", "--quiet", before):
        give_up("the history of this checkout has no version before this one: fetch all of it")
    archive, source, installed = folder / "before.tar", folder / "source", folder / "installed"
    _git("archive", f"--output={archive}", before)
    source.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(source)], check=True)
    build = [sys.executable, "-m", "hatchling", "build", "--target=wheel"]
    subprocess.run(build, cwd=source, capture_output=True, check=True)
    [wheel] = (source / "dist").glob("*.whl")
    # The packages that it needs are those of this version.
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(installed)
    return installed


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
    """I5, I7, I14, I23: what one version has scheduled or approved, the other shows."""
    code = _wheel_before(tmp_path)
    known = migrate.migrations()[-1].number
    assert _speaks(code) == known - 1
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(fleet_of({**VMS, **LOAD}))
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
    upgraded = PreloadedNode(
        name="old",
        store=empty_database.url,
        folder=old.folder,
        flags=("--workers=0",),
        metadata=old.metadata,
        control=old.control,
    )
    try:
        old.start()
        with under_watch([old, new], empty_database.ask, VMS) as watch:
            before = requests.schedule(old, "vm-0").json["events"][0]["event_id"]
            # It migrates the database while the old one serves.
            new.start()
            after = requests.schedule(new, "vm-0").json["events"][0]["event_id"]
            late = requests.schedule(old, "vm-1").json["events"][0]["event_id"]
            approved = requests.approve_patiently(new, before, address=VMS["vm-0"])
            for node in (old, new):
                wait_until(lambda node=node: _shows(node, "vm-0", {before, after}))  # type: ignore[misc]
                wait_until(lambda node=node: _shows(node, "vm-1", {late}))  # type: ignore[misc]
            watch.wait_for_rounds()
            old.stop()
            watch.wait_for_rounds()
            upgraded.start()
            wait_until(lambda: _shows(upgraded, "vm-0", {before, after}))
    finally:
        stop_all([old, new, upgraded])

    assert approved.status == 200
    assert watch.documents.keys() == {"old", "new"}
    assert empty_database.ask("SELECT schema, oldest_code FROM store") == [(known, known - 1)]


def _shows(node: Node, vm: str, event_ids: set[str]) -> bool:
    return set(requests.events_of(requests.poll(node, address=VMS[vm]))) >= event_ids
