"""Refusals: one type for each, its facts as attributes, its message complete.

Each says what sort of refusal it is, and an edge goes by that: a new type needs no row in a table.
"""

from collections.abc import Collection, Iterable
from datetime import timedelta
from enum import Enum, auto
from typing import ClassVar, Final, Self

from forewarned.config.durations import format_duration

# The ids are annotated as plain strings here: `ids` itself refuses with an error of this module.

_LONGEST_SHOWN: Final = 100


class Category(Enum):
    """Why a request fails, as far as a caller must tell the reasons apart."""

    INVALID = auto()
    """The request makes no sense, whatever the state of the server."""
    UNAUTHENTICATED = auto()
    """The caller did not prove who they are."""
    FORBIDDEN = auto()
    """The caller is known, and may not do this."""
    NOT_FOUND = auto()
    """The request names something that does not exist."""
    CONFLICT = auto()
    """The request makes sense, but not in the state that things are in."""
    TOO_LARGE = auto()
    UNAVAILABLE = auto()
    """The server can't answer now. The same request may succeed later."""


class RefusalError(Exception):
    """A request that the rules refuse. Nothing has changed."""

    category: ClassVar[Category]
    field: str | None = None
    """The part of the request that is wrong, by its name in the control API."""

    # Not `@override`: Python 3.11 has it in a library only, and the core takes none.
    def __init_subclass__(  # type: ignore[explicit-override]  # as above
        cls, *, category: Category, field: str | None = None
    ) -> None:
        super().__init_subclass__()
        cls.category = category
        cls.field = field

    def at(self, field: str) -> Self:
        """The same refusal, for a request that has another name for that part."""
        self.field = field
        return self


class InvalidIdError(RefusalError, category=Category.INVALID, field="event_id"):
    def __init__(self, text: str) -> None:
        # A client that sends a book gets a line back.
        shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
        super().__init__(f"{shown!r} is not an event id: expected a GUID of 32 hexadecimal digits")
        self.text = text


class UnknownEventError(RefusalError, category=Category.NOT_FOUND, field="event_id"):
    """No event with this id is, or was, there. VMs are told the same of a foreign id."""

    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} was not found")
        self.event_id = event_id


class DuplicateEventError(RefusalError, category=Category.CONFLICT, field="event_id"):
    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} already exists")
        self.event_id = event_id


class UnknownResourceError(RefusalError, category=Category.NOT_FOUND, field="resources"):
    def __init__(self, name: str) -> None:
        super().__init__(f"no VM is named {name!r}")
        self.name = name


class UnknownScopeError(RefusalError, category=Category.NOT_FOUND, field="scope"):
    def __init__(self, scope_id: str) -> None:
        super().__init__(f"no scope is named {scope_id!r}")
        self.scope_id = scope_id


class UnknownHostError(RefusalError, category=Category.NOT_FOUND, field="host"):
    def __init__(self, host: str) -> None:
        super().__init__(f"no VM runs on a host named {host!r}")
        self.host = host


class NoResourcesError(RefusalError, category=Category.INVALID, field="resources"):
    def __init__(self) -> None:
        super().__init__("an event must name at least one VM")


class DuplicateResourceError(RefusalError, category=Category.CONFLICT, field="resources"):
    def __init__(self, name: str) -> None:
        super().__init__(f"VM {name!r} is named twice")
        self.name = name


class SeveralUpdateDomainsError(RefusalError, category=Category.INVALID, field="resources"):
    def __init__(self, domains: Iterable[int]) -> None:
        self.domains = tuple(sorted(domains))
        listed = ", ".join(map(str, self.domains))
        super().__init__(
            f"the VMs are in update domains {listed}, and an event can only name VMs of one update"
            " domain: schedule one event for each, or maintain the whole set"
        )


class NotSpotError(RefusalError, category=Category.INVALID, field="resources"):
    def __init__(self, name: str) -> None:
        super().__init__(f"VM {name!r} is not a Spot VM, and only Spot VMs are preempted")
        self.name = name


class SpotTerminateError(RefusalError, category=Category.INVALID, field="resources"):
    def __init__(self, name: str) -> None:
        super().__init__(f"VM {name!r} is a Spot VM, and those get no terminate notification")
        self.name = name


class NoticeTooShortError(RefusalError, category=Category.INVALID, field="notice"):
    def __init__(self, notice: timedelta, minimum: timedelta) -> None:
        super().__init__(
            f"a notice of {format_duration(notice)} is below the minimum of"
            f" {format_duration(minimum)} for this type of event;"
            " an emulator allows it if you ask for short notice"
        )
        self.notice = notice
        self.minimum = minimum


class NoticeTooLongError(RefusalError, category=Category.INVALID, field="notice"):
    def __init__(self, notice: timedelta, maximum: timedelta) -> None:
        super().__init__(
            f"a notice of {format_duration(notice)} is above"
            f" the maximum of {format_duration(maximum)}"
        )
        self.notice = notice
        self.maximum = maximum


class ShortNoticeForbiddenError(RefusalError, category=Category.INVALID, field="short_notice"):
    def __init__(self) -> None:
        super().__init__("short notice is for emulators; this server enforces the minimum notice")


class BadDurationError(RefusalError, category=Category.INVALID, field="duration"):
    def __init__(self, duration: timedelta, longest: timedelta) -> None:
        super().__init__(
            f"a duration of {format_duration(duration)} is not between zero and {longest.days} "
            "days; omit it if it is unknown"
        )
        self.duration = duration
        self.longest = longest


class DescriptionTooLongError(RefusalError, category=Category.INVALID, field="description"):
    def __init__(self, length: int, longest: int) -> None:
        super().__init__(f"a description of {length} characters is longer than {longest}")
        self.length = length
        self.longest = longest


class ReasonTooLongError(RefusalError, category=Category.INVALID, field="reason"):
    def __init__(self, length: int, longest: int) -> None:
        super().__init__(f"a reason of {length} characters is longer than {longest}")
        self.length = length
        self.longest = longest


class TooManyUserEventsError(RefusalError, category=Category.CONFLICT, field="source"):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"this scope already has the maximum number of open user events, {limit}: cancel one,"
            " or wait until one is over"
        )
        self.limit = limit


class NotOwnResourceError(RefusalError, category=Category.FORBIDDEN, field="event_id"):
    """The setting that keeps VMs from approving each other's Terminate is on."""

    def __init__(self, event_id: str) -> None:
        super().__init__(
            f"event {event_id} does not name this VM, and only a VM it names may approve it"
        )
        self.event_id = event_id


class AlreadyStartedError(RefusalError, category=Category.CONFLICT, field="event_id"):
    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} has started and can no longer be canceled")
        self.event_id = event_id


class NotStartedError(RefusalError, category=Category.CONFLICT, field="event_id"):
    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} has not started; approve it, or wait for its NotBefore")
        self.event_id = event_id


class ClosedEventError(RefusalError, category=Category.CONFLICT, field="event_id"):
    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} is over")
        self.event_id = event_id


class UnknownTaskError(RefusalError, category=Category.NOT_FOUND, field="vm"):
    def __init__(self, key: str) -> None:
        super().__init__(f"there is no task {key}: its VM has no actuator, or its event is over")
        self.key = key


class TaskLostError(RefusalError, category=Category.CONFLICT, field="attempt"):
    """Another actuator has claimed the task since, an operator skipped it, or it is over."""

    def __init__(self, key: str, attempt: int) -> None:
        super().__init__(f"attempt {attempt} at task {key} is no longer the current attempt")
        self.key = key
        self.attempt = attempt


class TaskStateError(RefusalError, category=Category.CONFLICT, field="vm"):
    def __init__(self, key: str, state: str, wanted: str) -> None:
        super().__init__(f"task {key} is {state}, so it can't be {wanted}")
        self.key = key
        self.state = state


class MaintenanceConflictError(RefusalError, category=Category.CONFLICT, field="scope"):
    def __init__(self, scope_id: str, domains: Collection[int]) -> None:
        # No domain where the VMs that are worked on have been removed since.
        listed = ", ".join(map(str, sorted(domains)))
        where = f" (update domain {listed})" if listed else ""
        super().__init__(
            f"scope {scope_id!r} is under maintenance{where}, and only one update domain of a set "
            "is maintained at a time: try again when that is over, or cancel it"
        )
        self.scope_id = scope_id
        self.domains = frozenset(domains)


class NotMaintainableError(RefusalError, category=Category.INVALID, field="type"):
    def __init__(self, type_: str) -> None:
        super().__init__(f"maintenance is a Freeze, a Reboot or a Redeploy, not a {type_}")
        self.type = type_
