"""Refusals that concern the fleet and the clock rather than the life of an event."""

from collections.abc import Iterable
from datetime import timedelta

from forewarned.config.durations import format_duration
from forewarned.core.errors import Category, RefusalError
from forewarned.service.fleet.addresses import port_mark


class StoreUnavailableError(Exception):
    """The store can't be reached or can't write. Nothing has changed; try again later."""

    category = Category.UNAVAILABLE


class UnknownPositionError(Exception):
    """History can't be continued from a position. The message says why."""


class UnknownOutcomeError(StoreUnavailableError):
    """The store failed during a commit. The change may have been made, or not."""

    def __init__(self) -> None:
        super().__init__(
            "the store failed during a commit, and it is not known whether the change was made:"
            " check before you repeat it"
        )


class LeaseLostError(StoreUnavailableError):
    """Another node has taken over what this one was doing. What it has done so far stays."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "another node has taken over this work, part of which may be done: try again"
        )
        self.name = name


class NameTakenError(RefusalError, category=Category.CONFLICT, field="name"):
    def __init__(self, name: str, scope_id: str) -> None:
        super().__init__(f"a VM named {name!r} already exists, in scope {scope_id!r}")
        self.name = name
        self.scope_id = scope_id


class AddressTakenError(RefusalError, category=Category.CONFLICT, field="address"):
    def __init__(self, address: str, name: str) -> None:
        mark = port_mark(address)
        what = f"address {address}" if mark is None else f"port mark {mark}"
        super().__init__(f"{what} is already bound to VM {name!r}")
        if mark is not None:
            self.field = "port_mark"
        self.address = address
        self.name = name


class HostSharedError(RefusalError, category=Category.INVALID, field="host"):
    """A host goes down as a whole, so it can't hold two update domains of one set."""

    def __init__(self, host: str, scope_id: str, domains: Iterable[int]) -> None:
        self.domains = tuple(sorted(domains))
        listed = ", ".join(map(str, self.domains))
        super().__init__(
            f"host {host!r} would have VMs of update domains {listed} of {scope_id!r}: give each"
            " update domain its own hosts"
        )
        self.host = host
        self.scope_id = scope_id


class RealClockError(RefusalError, category=Category.CONFLICT, field="clock"):
    def __init__(self) -> None:
        super().__init__(
            "this server runs in real time and its clock can't be moved: an emulator started "
            "with --clock paused or --clock 1x allows it"
        )


class BadSpeedError(RefusalError, category=Category.INVALID, field="speed"):
    def __init__(self, speed: float) -> None:
        super().__init__(f"a speed of {speed:g} is not between 0.001 and 100000 times real time")
        self.speed = speed


class BadStepError(RefusalError, category=Category.INVALID, field="by"):
    """Time only goes forward, and not so far that no calendar can follow."""

    def __init__(self, by: timedelta, longest: timedelta) -> None:
        super().__init__(
            f"a step must be above zero and at most {longest.days} days, not {format_duration(by)}"
        )
        self.by = by


class FaultsForbiddenError(RefusalError, category=Category.CONFLICT, field="mode"):
    def __init__(self) -> None:
        super().__init__(
            "this server is in service mode, and only emulators inject faults: start one with "
            "'forewarned serve'"
        )


class ResetForbiddenError(RefusalError, category=Category.CONFLICT, field="mode"):
    def __init__(self) -> None:
        super().__init__(
            "this server is in service mode, and only emulators can be reset: start one with "
            "'forewarned serve'"
        )


class RequestsForbiddenError(RefusalError, category=Category.CONFLICT, field="mode"):
    def __init__(self) -> None:
        super().__init__(
            "this server is in service mode, and only the requests to emulators can be watched:"
            " start one with 'forewarned serve'"
        )


class BadFaultError(RefusalError, category=Category.INVALID):
    """A fault whose parts don't go together."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class TooManyFaultsError(RefusalError, category=Category.CONFLICT, field="faults"):
    def __init__(self, most: int) -> None:
        super().__init__(f"there are already {most} faults, the maximum: remove some")
        self.most = most


class UnknownFaultError(RefusalError, category=Category.NOT_FOUND, field="fault_id"):
    def __init__(self, fault_id: str) -> None:
        super().__init__(f"no fault has the id {fault_id!r}")
        self.fault_id = fault_id
