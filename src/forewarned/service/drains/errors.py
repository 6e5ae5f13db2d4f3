"""Refusals that concern host drains."""

from datetime import timedelta

from forewarned.config.durations import format_duration
from forewarned.core.errors import Category, RefusalError


class UnknownDrainError(RefusalError, category=Category.NOT_FOUND, field="host"):
    def __init__(self, host: str) -> None:
        super().__init__(f"host {host!r} is not being drained")
        self.host = host


class DrainUnderWayError(RefusalError, category=Category.CONFLICT, field="host"):
    def __init__(self, host: str) -> None:
        super().__init__(
            f"host {host!r} is already being drained, or its VMs are returning:"
            " 'forewarned host status' shows its progress, 'forewarned host undrain' ends it"
        )
        self.host = host


class DrainInTheWayError(RefusalError, category=Category.CONFLICT, field="dry_run"):
    def __init__(self, host: str, state: str) -> None:
        super().__init__(
            f"a dry run would replace the drain of host {host!r}, which is {state} and keeps the"
            " host cordoned: 'forewarned host status' shows what is left; drain the host again"
            " without a dry run, or run 'forewarned host undrain' first"
        )
        self.host = host
        self.state = state


class HostEmptyError(RefusalError, category=Category.CONFLICT, field="host"):
    def __init__(self, host: str) -> None:
        super().__init__(
            f"host {host!r} is already drained and empty: no VM is moved there until you run"
            " 'forewarned host undrain'"
        )
        self.host = host


class UndrainableError(RefusalError, category=Category.INVALID, field="type"):
    def __init__(self, type_: str) -> None:
        super().__init__(
            f"a {type_} does not move VMs to another host: use Freeze for live migration, or"
            " Redeploy"
        )
        self.type = type_


class DeadlineTooSoonError(RefusalError, category=Category.INVALID, field="deadline"):
    def __init__(self, deadline: timedelta, notice: timedelta) -> None:
        super().__init__(
            f"a deadline of {format_duration(deadline)} is shorter than the notice that VMs get,"
            f" {format_duration(notice)}"
        )
        self.deadline = deadline
        self.notice = notice
