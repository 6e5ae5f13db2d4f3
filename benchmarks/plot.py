"""A small SVG of how each figure stands to its goal.

It carries its own background, for light and for dark, so that it is readable on any page.
"""

import math
from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape

from benchmarks import page
from benchmarks.figures import Goal, Line, Spread

WIDTH: Final = 860

_LEFT: Final = 400
_RIGHT: Final = 130
_STEP: Final = 26
_TOP: Final = 62
_LEAST: Final = 0.1
_MOST: Final = 10.0
_STYLE: Final = """
.back { fill: #ffffff } .text { fill: #1f2430 } .soft { fill: #5a6270 }
.line { stroke: #c9ced6 } .goal { stroke: #1f2430 }
.met { fill: #2f855a } .missed { fill: #c05621 }
@media (prefers-color-scheme: dark) {
  .back { fill: #1e2129 } .text { fill: #e6e8ec } .soft { fill: #a4abb8 }
  .line { stroke: #414755 } .goal { stroke: #e6e8ec }
  .met { fill: #48bb78 } .missed { fill: #ed8936 }
}
text { font: 12px system-ui, sans-serif }
"""


def svg(lines: Iterable[Line]) -> str:
    """One bar for each figure that has a goal; right of the line at 1 it is met."""
    bars = [
        (line, line.spread, line.goal)
        for line in lines
        if line.spread is not None and line.goal is not None
    ]
    height = _TOP + _STEP * len(bars) + 16
    about = 'role="img" aria-label="Each figure of the benchmark, beside its goal"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {about}>',
        f"<style>{_STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}" rx="8"/>',
        _text(16, 24, "Times better than the goal (logarithmic; right of 1 it is met)", "text"),
        *_scale(height),
    ]
    for number, (line, spread, goal) in enumerate(bars):
        parts += _bar(_TOP + _STEP * number, line, spread, goal)
    return "\n".join([*parts, "</svg>", ""])


def place(margin: float) -> float:
    """Where a margin stands, from left to right."""
    bounded = min(max(margin, _LEAST), _MOST)
    share = math.log(bounded / _LEAST) / math.log(_MOST / _LEAST)
    return _LEFT + share * (WIDTH - _LEFT - _RIGHT)


def _scale(height: int) -> list[str]:
    parts = []
    for margin in (0.1, 0.3, 1.0, 3.0, 10.0):
        at, kind = place(margin), "goal" if margin == 1 else "line"
        ends = f'y1="{_TOP - 12}" y2="{height - 12}"'
        parts.append(f'<line class="{kind}" x1="{at:.1f}" x2="{at:.1f}" {ends}/>')
        parts.append(_text(at, _TOP - 18, f"{margin:g}", "soft", anchor="middle"))
    return parts


def _bar(top: int, line: Line, spread: Spread, goal: Goal) -> list[str]:
    margin = goal.margin(spread.median)
    start, end = sorted((place(1.0), place(margin)))
    kind = "met" if margin >= 1 else "missed"
    what = line.what if len(line.what) <= 52 else line.what[:51] + "…"
    figure = f"{page.result(line)} ({page.goal(goal, '')})"
    size = f'width="{max(end - start, 2):.1f}" height="16"'
    return [
        _text(16, top + 12, f"{line.row}  {what}", "text"),
        f'<rect class="{kind}" x="{start:.1f}" y="{top}" {size} rx="3"/>',
        _text(WIDTH - 12, top + 12, figure, "soft", anchor="end"),
    ]


def _text(x: float, y: float, text: str, kind: str, *, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
