"""The values that scenario files are written with."""

import re
from datetime import timedelta
from typing import Annotated, Final

from forewarned.config.mistakes import ExpectedError
from forewarned.config.values import duration

NAME: Final = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,62}\w)?", re.ASCII)
LONGEST_WAIT: Final = timedelta(minutes=10)


def name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ExpectedError(
            "a name of up to 64 letters, digits, hyphens, dots and underscores, starting with a"
            " letter or digit and not ending with a hyphen or dot"
        )
    return value


def names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ExpectedError("a list of names")
    return tuple(map(name, value))


Name = Annotated[str, name]
short_wait: Final = duration(timedelta(0), LONGEST_WAIT)
Wait = Annotated[timedelta, short_wait]
"""A span of real time.

The option --patience: `within` of waits and expectations, and `patience` of `stop_handler`, are
multiplied; limits (`at_most`, `backed_off`), `pause` and `down` are not.
"""


def times(number: int) -> str:
    return "once" if number == 1 else "twice" if number == 2 else f"{number} times"
