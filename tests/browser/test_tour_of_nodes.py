"""The tour of docs/several-nodes.md: what is done at one node is seen in a browser at another."""

import json
import re
import shlex
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from anyio import to_thread
from playwright.async_api import Browser

from tests import preloaded
from tests.browser.test_signing_in import sign_in
from tests.browser.windows import LONGEST_WAIT, Window, open_window
from tests.cluster.nodes import NAMES, Node, PreloadedNode, start_all, stop_all
from tests.end_to_end.server_process import environment
from tests.end_to_end.transcripts import Step, steps, without_chance
from tests.postgresql.databases import Database

ROOT: Final = Path(__file__).resolve().parents[2]
GUIDE: Final = (ROOT / "docs" / "several-nodes.md").read_text(encoding="utf-8")
[TOUR] = re.findall(r"^## Try it on one machine\n(.*?)^## ", GUIDE, re.DOTALL | re.MULTILINE)
SHOWN: Final = {
    "schedule reboot": ("Reboot", "Scheduled"),
    "approve": ("Reboot", "Started"),
    "complete": ("Reboot", "Completed"),
    "schedule preempt": ("Preempt", "Scheduled"),
    "wait": ("Preempt", "Started"),
}
"""The type and status of the event, as each command leaves it."""
SOON: Final = 1.0
"""Seconds. Row C10 of `make bench` is held to a tenth of it, on a machine that does nothing else."""
_PROGRAM: Final = ".venv/bin/forewarned "
# By the page's own observer: pages allow no script that Playwright could look for it with.
_WATCH: Final = """
([selector, longest]) => {
    window.seenAt = new Promise((tell) => {
        const look = () => {
            const found = document.querySelector(selector);
            if (found !== null) tell([found.id, Date.now()]);
            return found !== null;
        };
        if (look()) return;
        const observer = new MutationObserver(() => { if (look()) observer.disconnect(); });
        observer.observe(document.body, { subtree: true, childList: true, attributes: true });
        setTimeout(() => tell(null), longest);
    });
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """As `make cluster` runs it, on other ports."""

    nodes: Sequence[Node]
    token: str

    def run(self, command: str) -> str:
        """Carry out a command of the tour, as its reader does. Returns what it printed."""
        for port, node in zip((8181, 8182, 8183), self.nodes, strict=True):
            command = command.replace(f"127.0.0.1:{port}", node.metadata)
        if command.startswith(_PROGRAM):
            return self.forewarned(*shlex.split(command.removeprefix(_PROGRAM)))
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def forewarned(self, *words: str) -> str:
        surroundings = environment(
            FOREWARNED_TOKEN=self.token, FOREWARNED_CONTROL=self.nodes[0].control
        )
        done = preloaded.run(*words, environment=surroundings)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def newest(self, action: str) -> Any:  # JSON, which the test looks into
        """The last row of the history that is about this."""
        rows = json.loads(self.forewarned("history", "--json"))["history"]
        return next(row for row in rows if row["action"] == action)


@pytest.fixture
def cluster(database: Database, tmp_path: Path) -> Iterator[Cluster]:
    create = ("token", "create", "me", "--role=admin", f"--store={database.url}")
    made = preloaded.run(*create, environment=environment(), folder=tmp_path)
    fleet = ROOT / "examples" / "several-nodes" / "fleet.toml"
    flags = ("--workers=0", "--control-access=token", f"--fleet={fleet}")
    nodes = [
        PreloadedNode(name=name, store=database.url, folder=tmp_path / name, flags=flags)
        for name in NAMES
    ]
    try:
        start_all(nodes)
        yield Cluster(nodes=nodes, token=made.stdout.strip())
    finally:
        stop_all(nodes)


@pytest.mark.parametrize(
    "tour",
    [
        pytest.param(steps(TOUR)[:-1], id="all but the last step, which takes half a minute"),
        pytest.param(steps(TOUR), id="all of it", marks=pytest.mark.thorough),
    ],
)
async def test_each_step_at_the_first_node_is_seen_at_the_console_of_the_third(
    cluster: Cluster, browser: Browser, tour: list[Step]
) -> None:
    """I7, I25: what VMs read at any node, and what the console of another shows, is the same."""
    window = await open_window(browser, f"http://{cluster.nodes[-1].control}")
    await window.open("/")
    await sign_in(window, cluster.token)
    await window.is_live()
    delays: dict[str, float] = {}
    for step in tour:
        command = next((name for name in SHOWN if f"forewarned {name}" in step.command), None)
        if command is None:
            printed = await to_thread.run_sync(cluster.run, step.command)
            assert without_chance(printed) == without_chance(step.output), step.command
            continue
        event_type, status = SHOWN[command]
        await _watch(window, f"#timeline .bar.type-{event_type}.status-{status}")
        await to_thread.run_sync(cluster.run, step.command)
        seen_id, seen_at = await _seen(window)
        made = await to_thread.run_sync(cluster.newest, status.lower())
        assert seen_id == f"bar-{made['event_id']}"
        delays[command] = seen_at - datetime.fromisoformat(made["at"]).timestamp()

    print({name: f"{delay:.3f} s" for name, delay in delays.items()})  # noqa: T201  # for -rP
    assert list(delays) == list(SHOWN)[: len(delays)]
    assert len(delays) >= 4
    assert statistics.median(delays.values()) < SOON, delays
    assert await window.close() == []


async def _watch(window: Window, selector: str) -> None:
    await window.page.evaluate(_WATCH, [selector, LONGEST_WAIT])


async def _seen(window: Window) -> tuple[str, float]:
    """The id of what was watched for, and when the page had it, in seconds since 1970."""
    seen = await window.page.evaluate("window.seenAt")
    assert seen is not None, "it was not shown"
    return seen[0], seen[1] / 1e3
