"""The kinds of value a setting can have, each with its parser.

A parser takes what a file, the environment or a flag holds: text, or the TOML type it stands for.
It refuses with a ValueError that says what is allowed. `show` is its inverse.
"""

import contextlib
import ipaddress
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from typing_extensions import override

from forewarned.config.durations import format_duration, parse_duration
from forewarned.config.mistakes import ExpectedError, any_of, did_you_mean

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

T = TypeVar("T")
Choice = TypeVar("Choice", bound=StrEnum)

_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})")
_SCHEME: Final = re.compile(r"^https?://")
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_DATABASE: Final = re.compile(
    r"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^:@/?]*)(?P<password>:[^@/]*)?@)?"
    r"(?P<place>[^@?]*)(?:\?(?P<parameters>[^@?]*))?"
)
_HARMLESS: Final = {"host", "port", "dbname", "user", "service", "sslmode", "target_session_attrs"}
"""Parameters of a database's URL whose values are shown. Others may be secrets."""
_HIDDEN: Final = "***"
_SPEED: Final = re.compile(r"(?P<speed>[0-9]{1,6}(?:\.[0-9]{1,6})?)x")
_SLOWEST, _FASTEST = 0.001, 100_000
_NONE: Final = "none"
_ON: Final = {"on", "true", "yes", "1"}
_OFF: Final = {"off", "false", "no", "0"}


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a listener listens."""

    host: str
    port: int
    """0 takes any free one."""

    @classmethod
    def parse(cls, value: object, *, example: int = 8169) -> "Address":
        """`example` is the port that a refusal shows."""
        allowed = f"HOST:PORT, like 127.0.0.1:{example} or [::1]:{example}"
        # FOREWARNED_CONTROL is read by clients too, and those take it for an address on the web.
        text = _SCHEME.sub("", value).removesuffix("/") if isinstance(value, str) else ""
        found = _ADDRESS.fullmatch(text)
        if found is None or int(found["port"]) > 65535:
            raise ExpectedError(allowed)
        if found["ipv6"] is None:
            if not _HOST_NAME.fullmatch(found["host"]):
                raise ExpectedError(allowed)
            return cls(found["host"], int(found["port"]))
        try:
            host = ipaddress.IPv6Address(found["ipv6"])
        except ValueError:
            raise ExpectedError(allowed) from None
        return cls(str(host), int(found["port"]))

    @property
    def is_loopback(self) -> bool:
        """A name other than localhost may mean anything tomorrow, so it never is."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    @override
    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """Where a PostgreSQL database is. Its password is shown nowhere."""

    text: str = field(repr=False)
    """With the password."""

    @classmethod
    def parse(cls, value: object) -> "DatabaseUrl":
        if not isinstance(value, str) or not value.startswith(("postgresql://", "postgres://")):
            raise ExpectedError("postgresql://USER@HOST:PORT/DATABASE")
        if not _DATABASE.fullmatch(value):
            raise ExpectedError(
                "postgresql://USER@HOST:PORT/DATABASE, with @ : / ? and % in a name or password"
                " written as %40 %3A %2F %3F and %25"
            )
        return cls(value)

    @override
    def __str__(self) -> str:
        found = _DATABASE.fullmatch(self.text)
        if found is None:
            return f"postgresql://{_HIDDEN}"
        scheme, user, password, place, parameters = found.groups()
        signed_in = "" if user is None else f"{user}{f':{_HIDDEN}' if password else ''}@"
        shown = "" if parameters is None else f"?{'&'.join(_shown_parameters(parameters))}"
        return f"{scheme}{signed_in}{place}{shown}"


def _shown_parameters(parameters: str) -> Iterator[str]:
    for parameter in parameters.split("&"):
        name, _, value = parameter.partition("=")
        yield f"{name}={value if name in _HARMLESS else _HIDDEN}"


@dataclass(frozen=True, slots=True)
class ClockSpeed:
    speed: float | None
    """Against real time; 0 is paused. None is the machine's own clock, which can't be set."""

    @classmethod
    def parse(cls, value: object) -> "ClockSpeed":
        if value == "real":
            return cls(None)
        if value == "paused":
            return cls(0)
        found = _SPEED.fullmatch(value) if isinstance(value, str) else None
        if found is None or not _SLOWEST <= float(found["speed"]) <= _FASTEST:
            raise ExpectedError("real, paused, or a speed from 0.001x to 100000x, like 60x")
        return cls(float(found["speed"]))

    @property
    def is_real(self) -> bool:
        return self.speed is None

    @override
    def __str__(self) -> str:
        if self.speed is None:
            return "real"
        # Never in the notation with an exponent, which can't be read back.
        return f"{self.speed:.6f}".rstrip("0").rstrip(".") + "x" if self.speed else "paused"


def one_of(choices: type[Choice]) -> Callable[[object], Choice]:
    def parse(value: object) -> Choice:
        for choice in choices:
            if isinstance(value, str) and value.lower() == choice.lower():
                return choice
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise ExpectedError(any_of([*choices]), hint=hint)

    return parse


def optional(parse: Callable[[object], T]) -> Callable[[object], T | None]:
    return lambda value: None if value == _NONE else parse(value)


def or_off(parse: Callable[[object], T]) -> Callable[[object], T | None]:
    """For what can be switched off as a whole; None is off."""

    def parse_or_off(value: object) -> T | None:
        if value is False or (isinstance(value, str) and value.lower() in {"off", _NONE}):
            return None
        try:
            return parse(value)
        except ExpectedError as wrong:
            raise ExpectedError(f"{wrong.what}, or off") from None

    return parse_or_off


def on_off(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else ""
    if word not in _ON | _OFF:
        raise ExpectedError("on or off")
    return word in _ON


def text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ExpectedError("a name")
    return value


def file_path(value: object) -> Path:
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value:
        raise ExpectedError("a path")
    return Path(value)


def matching(form: re.Pattern[str], meaning: str) -> Callable[[object], str]:
    """Text of a form. The message does not repeat it, as it may be a secret in the wrong place."""

    def parse(value: object) -> str:
        if not isinstance(value, str) or not form.fullmatch(value):
            raise ValueError(f"expected {meaning}")
        return value

    return parse


def names(value: object) -> tuple[str, ...]:
    """A list, or text with commas in it."""
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
        raise ExpectedError("names, separated by commas")
    return tuple(stripped for name in listed if (stripped := name.strip()))


def whole(least: int, most: int | None = None) -> Callable[[object], int]:
    allowed = f"of at least {least}" if most is None else f"from {least} to {most}"

    def parse(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ExpectedError(f"a whole number {allowed}")
        if most is not None and value > most:
            raise ExpectedError(f"a whole number {allowed}")
        return value

    return parse


def number(least: float, most: float) -> Callable[[object], float]:
    def parse(value: object) -> float:
        found = math.nan
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            with contextlib.suppress(ValueError, OverflowError):
                found = float(value)
        if not least <= found <= most:
            raise ExpectedError(f"a number from {least:.12g} to {most:.12g}")
        return found

    return parse


def duration(least: timedelta, most: timedelta) -> Callable[[object], timedelta]:
    def parse(value: object) -> timedelta:
        found = value if isinstance(value, timedelta) else parse_duration(str(value))
        if not least <= found <= most:
            raise ExpectedError(
                f"a duration from {format_duration(least)} to {format_duration(most)}"
            )
        return found

    return parse


def network(value: object) -> Network:
    try:
        return ipaddress.ip_network(str(value))
    except ValueError:
        raise ExpectedError("a range of addresses, like 10.20.0.0/16") from None


def show(value: object) -> str:
    """A setting's value as its parser reads it."""
    match value:
        case None:
            return _NONE
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:.12g}"
        case timedelta():
            return format_duration(value)
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)
