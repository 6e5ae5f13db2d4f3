"""Where the time goes between a scheduling request and the VM that waits for it: P7, step by step.

python -m benchmarks.journey [--urgent] [TIMES]

This alone looks inside the server: its processes note when they come by certain functions.
"""

import contextlib
import itertools
import json
import tempfile
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from benchmarks import machine, product
from benchmarks.commits import Ledger
from benchmarks.figures import percentile
from benchmarks.machine import Cores
from benchmarks.rows.visible import until_visible

WARM: Final = 50
WRITER: Final = "forewarned.runtime.writer"
POLLER: Final = "forewarned.runtime.poller"


@dataclass(frozen=True, slots=True)
class Step:
    what: str
    program: str
    ends_at: str
    """The function that is called at its end."""


STEPS: Final = (
    Step(
        "the request reaches the writer",
        WRITER,
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol.data_received",
    ),
    Step("HTTP, the caller, the body", WRITER, "forewarned.service.engine:Engine.decide"),
    Step(
        "over to the store's thread",
        WRITER,
        "forewarned.storage.sqlite.group_commit:GroupCommitter.run_calls",
    ),
    Step(
        "the decision and its rows",
        WRITER,
        "forewarned.storage.sqlite.writes:SqliteTransaction.end",
    ),
    Step("the commit", WRITER, "forewarned.storage.sqlite.scope_cache:ScopeCache.committed"),
    Step("back to the event loop", WRITER, "forewarned.feed.writer_end:WriterEnd.hear"),
    Step("over the feed to the poller", POLLER, "forewarned.feed.board_mirror:BoardMirror.take"),
)
LAST: Final = "the document, and the answer to the VM"

Calls = Mapping[str, Sequence[float]]
"""When each function was called, the earliest first."""


def spans(calls: Calls, sent: float, heard: float) -> list[float]:
    """Seconds of each step of one journey, and of the last."""
    at = [sent]
    for step in STEPS:
        # The first call since the step before: what else the server does comes later.
        instants = calls[step.ends_at]
        at.append(instants[bisect_left(instants, at[-1])])
    at.append(heard)
    return [end - begin for begin, end in itertools.pairwise(at)]


def measure(scratch: Path, cores: Cores, times: int) -> tuple[list[list[float]], list[float]]:
    """The spans of each journey, and the bare commit made before each."""
    ledger = Ledger(scratch / "ledger")
    with product.serving(
        scratch / "server",
        product.fleet_of(0, kind="grouped"),
        prefix=cores.serving,
        environment=_noting(scratch),
    ) as server:
        pairs = [(ledger.commit(), until_visible(server)) for _ in range(WARM + times)][WARM:]
    ledger.close()
    calls = _calls(scratch)
    return [spans(calls, sent, heard) for _, (sent, heard) in pairs], [pair[0] for pair in pairs]


def _noting(folder: Path) -> dict[str, str]:
    wanted: dict[str, list[str]] = {}
    for step in STEPS:
        wanted.setdefault(step.program, []).append(step.ends_at)
    return {
        "PYTHONPATH": str(Path(__file__).parent / "marks"),
        "NOTED_CALLS": json.dumps(wanted),
        "NOTED_IN": str(folder),
    }


def _calls(folder: Path) -> Calls:
    """What the server's processes have left behind at their end."""
    noted: dict[str, list[float]] = {step.ends_at: [] for step in STEPS}
    for program in {step.program for step in STEPS}:
        for name, at in json.loads((folder / f"{program}.marks").read_text()):
            noted[name].append(at)
    return noted


@click.command()
@click.argument("times", type=click.IntRange(1), default=500)
@click.option("--urgent", is_flag=True, help="Ahead of all other work on this machine, as root.")
def main(times: int, *, urgent: bool) -> None:
    """Say where the time goes, over so many TIMES."""
    cores = Cores.of_this_machine()
    cores.load_from_here()
    with (
        machine.first_in_the_queue() if urgent else contextlib.nullcontext(),
        tempfile.TemporaryDirectory(dir="/var/tmp") as scratch,
    ):
        journeys, commits = measure(Path(scratch), cores, times)
    steps = zip(*journeys, strict=True)
    for what, taken in zip([*(step.what for step in STEPS), LAST], steps, strict=True):
        _show(what, taken)
    _show("total", [sum(journey) for journey in journeys])
    _show("a bare commit", commits)


def _show(what: str, seconds: Sequence[float]) -> None:
    median, late = (percentile(seconds, percent) * 1e3 for percent in (50, 99))
    print(f"{what:40} p50 {median:6.2f} ms   p99 {late:6.2f} ms")


if __name__ == "__main__":
    main()
