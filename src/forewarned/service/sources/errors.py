"""Refusals that concern sources."""

from datetime import timedelta

from forewarned.config.durations import format_duration
from forewarned.core.errors import Category, RefusalError


class UnknownSourceError(RefusalError, category=Category.NOT_FOUND, field="name"):
    def __init__(self, name: str) -> None:
        super().__init__(f"no source {name!r} has reported a listing yet")
        self.name = name


class ReportingSourceError(RefusalError, category=Category.CONFLICT, field="name"):
    def __init__(self, name: str, *, silence: timedelta, enough: timedelta) -> None:
        whole = timedelta(seconds=silence // timedelta(seconds=1))
        super().__init__(
            f"source {name!r} reported {format_duration(whole)} ago, so it is still in use: remove"
            " its table [[sources]] from the settings, restart the process that runs its actuator,"
            f" and try again {format_duration(enough)} after its last report"
        )
        self.name = name
