"""Where the last whole run of a family is kept: as JSON, as a plot, and in the page on scale."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import page, plot
from benchmarks.figures import Line

ROOT: Final = Path(__file__).parent.parent
RESULTS: Final = ROOT / "benchmarks" / "results"
PLOTS: Final = ROOT / "docs" / "assets"
PAGE: Final = ROOT / "docs" / "scale.md"


def as_json(lines: Sequence[Line], conditions: Mapping[str, str]) -> str:
    rows = [dataclasses.asdict(line) for line in lines]
    return json.dumps({"conditions": dict(conditions), "lines": rows}, indent=2, ensure_ascii=False)


def keep(
    family: str, lines: Sequence[Line], conditions: Mapping[str, str], command: str
) -> list[Path]:
    results, drawn = RESULTS / f"{family}.json", PLOTS / f"bench-{family}.svg"
    for path in (results, drawn):
        path.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(as_json(lines, conditions) + "\n")
    drawn.write_text(plot.svg(lines))
    body = page.section(lines, conditions, command)
    PAGE.write_text(page.refresh(PAGE.read_text(), family, body))
    return [results, drawn, PAGE]
