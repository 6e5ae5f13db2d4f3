"""How far an examination has come, while it runs."""

import sys
from typing import Self

import click
from rich.console import Console
from rich.status import Status
from typing_extensions import override

from forewarned.cli.exam import pages
from forewarned.scenarios import examination
from forewarned.scenarios.report import Report


class Progress:
    """A line for each scenario that is over; on a terminal, also which ones are being played."""

    def __init__(self, total: int, *, is_quiet: bool) -> None:
        self._total = total
        self._is_quiet = is_quiet
        self._over = 0
        self._playing: list[str] = []
        self._errors = Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._status = Status("", console=self._errors)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def hear(self, news: "examination.Progress") -> None:
        if isinstance(news, Report):
            self._over += 1
            self._playing.remove(news.scenario.name)
            if not self._is_quiet:
                click.echo(pages.scenario_line(news))
        else:
            self._playing.append(news.scenario.name)
        self._status.update(str(self))

    @override
    def __str__(self) -> str:
        return f"{self._over} of {self._total}; playing {', '.join(self._playing) or 'nothing'}"
