"""What templates can do with values: filters, tests, `+`, `~` and lists, each with a limit.

Invariant: nothing here takes or makes more than can be done in some milliseconds, because Python
does each of these steps without letting other threads run, and what they take counts as work.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, Final

from jinja2 import TemplateError
from jinja2.filters import FILTERS, do_float, do_int, do_round, do_trim
from jinja2.runtime import Undefined
from jinja2.tests import TESTS

LONGEST_TEXT: Final = 64 * 1024
"""Of what is made of a template, and of each text on the way."""
_LARGEST_LIST: Final = 4 * LONGEST_TEXT
"""Characters in all that a list holds."""
_LONGEST_NUMBER: Final = 100
"""Characters: the time that longer ones take grows with their square."""
_LONGEST_SET: Final = 100
"""Characters to trim: each of a text is compared with each of these."""
_MOST_DIGITS: Final = 15
"""What a float holds."""
_FILTERS: Final = [
    "capitalize",
    "default",
    "d",
    "first",
    "last",
    "length",
    "lower",
    "string",
    "title",
    "truncate",
    "upper",
    "urlencode",
]
_AT_A_GLANCE: Final = frozenset({"default", "d", "first", "last", "length"})
"""Filters that take the same time however large a value is."""
TEST_NAMES: Final = [
    "defined",
    "undefined",
    "none",
    "eq",
    "equalto",
    "ne",
    "ge",
    "gt",
    "le",
    "lt",
    "in",
    "string",
    "number",
    "boolean",
    "true",
    "false",
    "sequence",
    "mapping",
]
Spend = Callable[[int], None]
"""Counts work. Raises LimitError if it is too much."""


class LimitError(TemplateError):
    pass


# Any, here and below: values of a template.
def filters(spend: Spend) -> dict[str, Callable[..., Any]]:
    every = {**{name: FILTERS[name] for name in _FILTERS}, **_OWN_FILTERS}
    return {
        name: _checked(filter_, spend, at_a_glance=name in _AT_A_GLANCE)
        for name, filter_ in every.items()
    }


def tests(spend: Spend) -> dict[str, Callable[..., Any]]:
    every: Mapping[str, Any] = TESTS
    return {name: _checked(every[name], spend, at_a_glance=False) for name in TEST_NAMES}


def refuse_longer(length: int) -> None:
    if length > LONGEST_TEXT:
        raise LimitError(f"it produces more than {LONGEST_TEXT} characters")


def concatenated(spend: Spend, parts: Iterable[object]) -> str:
    """What `~` makes."""
    made = _join(parts)
    spend(1 + len(made))
    return made


def made_list(spend: Spend, values: Any) -> Any:
    """A list of the template's own, which may hold the same long text a thousand times."""
    spend(1 + _size(values) // 64)
    return values


def looked_at(spend: Spend, value: Any) -> Any:
    """What is compared, or a part of a text or a list."""
    spend(_work(value))
    return value


def refuse_long_sum(spend: Spend, left: object, right: object) -> None:
    """Before `+` makes it."""
    if isinstance(left, str) and isinstance(right, str):
        refuse_longer(len(left) + len(right))
        spend(1 + len(left) + len(right))
    else:
        spend(1 + _size((left, right)) // 64)


def each_counted(spend: Spend, values: Iterable[Any], work: int) -> Iterator[Any]:
    for value in values:
        spend(work)
        yield value


def _checked(
    function: Callable[..., Any], spend: Spend, *, at_a_glance: bool
) -> Callable[..., Any]:
    @wraps(function)  # Jinja2 reads what a filter wants to be passed from its attributes
    def checked(*args: Any, **named: Any) -> Any:
        if not at_a_glance:
            spend(sum(map(_work, args)))
        made = function(*args, **named)
        if isinstance(made, str):
            refuse_longer(len(made))
        # The first of a list, and what stands for what is missing, are no new texts.
        spend(10 + (len(made) if isinstance(made, str | list) and not at_a_glance else 0))
        return made

    return checked


def _work(value: object) -> int:
    """To look through it, or to compare it with another."""
    if isinstance(value, str):
        return 1 + len(value) // 64
    if isinstance(value, list | tuple):
        nested = sum(_work(each) for each in value if isinstance(each, list | tuple | dict))
        return 1 + len(value) // 2 + nested
    return 1


def _size(value: object) -> int:
    """In characters. Raises LimitError as soon as it is too large."""
    size = 0
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            size += len(part)
        elif isinstance(part, list | tuple | dict):
            size += 2 * len(part)
            left += part.values() if isinstance(part, dict) else part
        if size > _LARGEST_LIST:
            raise LimitError(f"a list holds more than {_LARGEST_LIST} characters in all")
    return size


# --- filters that Jinja2 has without limits ------------------------------------------------------


def _float(value: object, default: float = 0.0) -> float:
    _refuse_long_number(value, "float")
    return do_float(value, default)


def _int(value: object, default: int = 0, base: int = 10) -> int:
    _refuse_long_number(value, "int")
    return do_int(value, default, base)


def _refuse_long_number(value: object, name: str) -> None:
    if isinstance(value, str) and len(value) > _LONGEST_NUMBER:
        raise LimitError(f"{name} takes a string of at most {_LONGEST_NUMBER} characters")


def _round(value: float, precision: int = 0, method: Any = "common") -> float:
    if not -_MOST_DIGITS <= precision <= _MOST_DIGITS:
        raise LimitError(f"round takes a precision from -{_MOST_DIGITS} to {_MOST_DIGITS}")
    if not math.isfinite(value):
        raise LimitError("round takes a finite number")
    return do_round(value, precision, method)


def _join(parts: Iterable[object], between: str = "") -> str:
    gap = str(between)
    texts: list[str] = []
    length = 0
    for part in parts:
        texts.append(str(part))
        length += len(texts[-1]) + len(gap)
        refuse_longer(length)
    return gap.join(texts)


def _replace(text: object, old: str, new: str) -> str:
    whole, gone, put = str(text), str(old), str(new)
    refuse_longer(len(whole) + whole.count(gone) * max(0, len(put) - len(gone)))
    return whole.replace(gone, put)


def _sort(
    values: Iterable[Any],
    reverse: bool = False,  # noqa: FBT001, FBT002  # as Jinja2 has it
    case_sensitive: bool = False,  # noqa: FBT001, FBT002
    attribute: object = None,
) -> list[Any]:
    _refuse_attribute(attribute, "sort")
    return sorted(values, key=None if case_sensitive else _in_lower_case, reverse=reverse)


def _unique(
    values: Iterable[Any],
    case_sensitive: bool = False,  # noqa: FBT001, FBT002
    attribute: object = None,
) -> list[Any]:
    _refuse_attribute(attribute, "unique")
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(value if case_sensitive else _in_lower_case(value), value)
    return [*found.values()]


def _refuse_attribute(attribute: object, name: str) -> None:
    """It may have a thousand parts, each looked up for each value."""
    if attribute is not None:
        raise LimitError(f"{name} takes no attribute: omit it, as lists here contain only strings")


def _in_lower_case(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _to_json(value: object) -> str:
    if isinstance(value, Undefined):
        str(value)  # raises
    return json.dumps(value, ensure_ascii=False)


def _trim(value: str, chars: str | None = None) -> str:
    if chars is not None and len(chars) > _LONGEST_SET:
        raise LimitError(f"trim takes at most {_LONGEST_SET} characters to remove")
    return do_trim(value, chars)


_OWN_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "float": _float,
    "int": _int,
    "join": _join,
    "replace": _replace,
    "round": _round,
    "sort": _sort,
    "tojson": _to_json,
    "trim": _trim,
    "unique": _unique,
}
FILTER_NAMES: Final = sorted([*_FILTERS, *_OWN_FILTERS])
