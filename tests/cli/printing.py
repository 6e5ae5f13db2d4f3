"""What a page looks like on a terminal of 80 columns, without colours."""

from collections.abc import Iterable
from io import StringIO

from rich.console import Console, RenderableType

WIDTH = 80


def printed(lines: Iterable[RenderableType]) -> list[str]:
    console = Console(file=StringIO(), width=WIDTH, markup=False, highlight=False)
    with console.capture() as capture:
        for line in lines:
            console.print(line, crop=False)
    return [line.rstrip() for line in capture.get().splitlines()]
