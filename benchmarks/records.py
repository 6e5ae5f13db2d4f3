"""Where the last whole run is kept: as JSON, as a plot, and in the page on scale."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import page, plot
from benchmarks.figures import Line

ROOT: Final = Path(__file__).parent.parent
RESULTS: Final = ROOT / "benchmarks" / "results" / "latest.json"
PLOT: Final = ROOT / "docs" / "assets" / "bench.svg"
PAGE: Final = ROOT / "docs" / "scale.md"


def as_json(lines: Sequence[Line], conditions: Mapping[str, str]) -> str:
    rows = [dataclasses.asdict(line) for line in lines]
    return json.dumps({"conditions": dict(conditions), "lines": rows}, indent=2, ensure_ascii=False)


def keep(lines: Sequence[Line], conditions: Mapping[str, str], command: str) -> list[Path]:
    for path in (RESULTS, PLOT):
        path.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(as_json(lines, conditions) + "\n")
    PLOT.write_text(plot.svg(lines))
    body = page.section(lines, conditions, command)
    PAGE.write_text(page.refresh(PAGE.read_text(), body))
    return [RESULTS, PLOT, PAGE]
