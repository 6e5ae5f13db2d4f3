"""The last run as people read it: in a terminal, and in docs/scale.md."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.table import Table

from benchmarks.figures import Goal, Line, Verdict

_STYLES: Final = {
    Verdict.MET: "green",
    Verdict.MISSED: "red",
    Verdict.FAILED: "bold red",
    Verdict.SHOWN: "dim",
    Verdict.NOT_MEASURED: "yellow",
    Verdict.NOT_OFFERED: "yellow",
}
_SHORT: Final = 160


def number(value: float, unit: str) -> str:
    """Three digits that mean something: 0.987 ×, 12.3 ms, 29,340."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f} {unit}".rstrip()


def result(line: Line) -> str:
    return "–" if line.spread is None else number(line.spread.median, line.unit)


def spread(line: Line) -> str:
    if line.spread is None or line.spread.low == line.spread.high:
        return ""
    return f"{number(line.spread.low, '')} … {number(line.spread.high, '')}"


def goal(wanted: Goal | None, unit: str) -> str:
    return "" if wanted is None else f"{wanted.side} {wanted.bound:,g} {unit}".rstrip()


def table(lines: Iterable[Line]) -> Table:
    drawn = Table("row", "what")
    for name in ("figure", "spread", "goal"):
        drawn.add_column(name, justify="right", no_wrap=True)
    drawn.add_column("", no_wrap=True)
    for line in lines:
        drawn.add_row(
            line.row,
            line.what,
            result(line),
            spread(line),
            goal(line.goal, line.unit),
            f"[{_STYLES[line.verdict]}]{line.verdict}[/]",
        )
    return drawn


def notes(lines: Iterable[Line]) -> str:
    return "\n".join(f"{line.row}: {line.note}" for line in lines if line.note)


def markdown(lines: Iterable[Line]) -> str:
    rows = [
        (
            line.row,
            line.what or "not run",
            result(line),
            spread(line),
            goal(line.goal, line.unit),
            f"**{line.verdict}**" if line.verdict is Verdict.MISSED else str(line.verdict),
            _one_line(line.note),
        )
        for line in lines
    ]
    head = "| Row | What | Figure | Spread | Goal | | Notes |\n|---|---|--:|--:|--:|---|---|"
    return "\n".join([head, *("| " + " | ".join(row) + " |" for row in rows)])


def section(lines: Sequence[Line], conditions: Mapping[str, str], command: str) -> str:
    """What stands between the marks."""
    facts = "\n".join(f"- {name}: {value}" for name, value in conditions.items())
    return f"`{command}`\n\n{markdown(lines)}\n\n{facts}"


def refresh(page: str, family: str, body: str) -> str:
    """The page with all between a family's marks replaced. Raises ValueError if it has none."""
    marks = f"<!-- bench {family}: begin -->", f"<!-- bench {family}: end -->"
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"the page has no {marks[0]} and {marks[1]}")
    return f"{before}{begin}\n{body}\n{end}{after}"


def _one_line(note: str) -> str:
    text = " ".join(note.split()).replace("|", "\\|")
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
