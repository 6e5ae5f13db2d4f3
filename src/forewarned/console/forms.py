"""What people send from a form: fields as they typed them, read one by one.

Invariant: what was typed is kept, so that a form which is refused can be shown
again with it.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from starlette.requests import Request

from forewarned.config.durations import InvalidDurationError, format_duration, parse_duration
from forewarned.control.http import bodies
from forewarned.control.http.errors import BadRequestError, BodyTooLargeError

LARGEST: Final = 1 << 18
_MOST_FIELDS: Final = 20_000
_BETWEEN_NAMES: Final = re.compile(r"[\s,;]+")

Choice = TypeVar("Choice", bound=StrEnum)


class FieldError(BadRequestError):
    """A field that can't be read, or the form as a whole where there is no field."""


class Form:
    """The fields of a form, each with what was typed."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._given: dict[str, list[str]] = {}
        for name, value in pairs:
            self._given.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str) -> str:
        return self._given.get(name, [""])[-1].strip()

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._given.get(name, ()))

    def names(self) -> tuple[str, ...]:
        """The VMs that were ticked and those that were typed, each once, in any letter case."""
        typed = [name for name in _BETWEEN_NAMES.split(self.text("vms")) if name]
        chosen: dict[str, str] = {}
        for name in (*self.texts("vm"), *typed):
            chosen.setdefault(name.casefold(), name)
        if not chosen:
            raise FieldError("choose at least one VM", field="vms")
        return tuple(chosen.values())

    def required(self, name: str, what: str) -> str:
        given = self.text(name)
        if not given:
            raise FieldError(f"choose {what}", field=name)
        return given

    def choice(self, name: str, choices: type[Choice]) -> Choice:
        return _chosen(self.required(name, "one of these"), name, choices)

    def choices(self, name: str, choices: type[Choice]) -> frozenset[Choice]:
        """Those that were ticked."""
        return frozenset(_chosen(each, name, choices) for each in self.texts(name))

    def optional_choice(self, name: str, choices: type[Choice]) -> Choice | None:
        return self.choice(name, choices) if self.text(name) else None

    def lines(self, name: str, *, most: int) -> tuple[str, ...]:
        """One entry per line; empty lines don't count."""
        found = tuple(line for each in self.text(name).splitlines() if (line := each.strip()))
        if len(found) > most:
            raise FieldError(f"expected at most {most} lines", field=name)
        return found

    def long_text(self, name: str) -> str:
        """A text of several lines, with the spaces at its ends; empty if there is nothing else."""
        text = same_breaks(self._given.get(name, [""])[-1])
        return text if text.strip() else ""

    def span(self, name: str) -> timedelta | None:
        """None where it was left empty."""
        given = self.text(name)
        try:
            return parse_duration(given) if given else None
        except InvalidDurationError as error:
            raise FieldError(str(error), field=name) from None

    def whole(self, name: str, *, least: int, most: int) -> int:
        given = self.text(name)
        # More digits than any number has that is asked for here, and `int` would take its time.
        is_number = given.isascii() and given.isdecimal() and len(given) < 20
        number = int(given) if is_number else -1
        if not least <= number <= most:
            raise FieldError(f"expected a whole number from {least} to {most}", field=name)
        return number

    def instant(self, name: str) -> datetime | None:
        """None where it was left empty. Without a zone it is in UTC, as all that is shown."""
        begin, _ = self._time(name)
        return begin

    def end_of(self, name: str) -> datetime | None:
        """The instant after a time, which is as long as it is exact: a day, a minute, a second."""
        _, end = self._time(name)
        return end

    def _time(self, name: str) -> tuple[datetime, datetime] | tuple[None, None]:
        given = self.text(name)
        if not given:
            return None, None
        try:
            read = datetime.fromisoformat(given)
            begin = read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
            return begin, begin + _exactness(given)
        except (ValueError, OverflowError):
            raise FieldError(
                f"{given[:100]!r} is not a date or a time such as 2026-01-31 or 2026-01-31 12:00",
                field=name,
            ) from None

    def minutes(self, name: str, *, least: timedelta, most: timedelta) -> timedelta:
        minute = timedelta(minutes=1)
        try:
            return self.whole(name, least=least // minute, most=most // minute) * minute
        except FieldError:
            raise FieldError(
                f"expected whole minutes, from {format_duration(least)} to {format_duration(most)}",
                field=name,
            ) from None

    def number(self, name: str) -> float:
        given = self.text(name).removesuffix("x").removesuffix("×")
        try:
            return float(given)
        except ValueError:
            raise FieldError("expected a number, such as 60", field=name) from None


def same_breaks(text: str) -> str:
    """With line breaks as they are outside of forms: browsers send each as CR LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _chosen(given: str, name: str, choices: type[Choice]) -> Choice:
    try:
        return choices(given)
    except ValueError:
        listed = ", ".join(choices)
        raise FieldError(f"{given[:100]!r} is not one of {listed}", field=name) from None


def _exactness(time: str) -> timedelta:
    if ":" not in time:
        return timedelta(days=1)
    # Behind the date, and before a zone, which has a colon too.
    of_day = re.split(r"[+Z-]", time[10:], maxsplit=1)[0]
    return timedelta(seconds=1) if of_day.count(":") > 1 else timedelta(minutes=1)


async def read_form(request: Request) -> Form:
    """Raises FieldError for what no page of ours would send."""
    try:
        return Form(await bodies.form(request, largest=LARGEST, most_fields=_MOST_FIELDS))
    except BodyTooLargeError:
        raise FieldError(f"the form is larger than {LARGEST >> 10} KiB") from None
    except BadRequestError:
        raise FieldError("the form can't be read: send it from its page") from None
