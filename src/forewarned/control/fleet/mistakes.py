"""Reading one declaration of a fleet, and saying all that is wrong with it in its author's terms.

msgspec stops at the first mistake. Here the part at fault is left out and the rest read again, so
that a person need not mend a file one run at a time.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from forewarned.core.model import EvictionPolicy, Priority
from forewarned.service.fleet.declaration import Orchestration
from forewarned.service.fleet.layout import KeyPath
from forewarned.service.fleet.validation import InvalidFleetError, Mistake

Wire = TypeVar("Wire", bound=msgspec.Struct)

_MESSAGE: Final = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<at>[^`]*)`)?")
_STEP: Final = re.compile(r"\.(?P<key>[A-Za-z0-9_]+)|\[(?P<index>[0-9]+)\]")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<key>.*)`")
_MISSING: Final = re.compile(r"Object missing required field `(?P<key>.*)`")
_CHOICES: Final[Mapping[str, type[StrEnum]]] = {
    "priority": Priority,
    "eviction_policy": EvictionPolicy,
    "orchestration": Orchestration,
}
_LONGEST_VALUE: Final = 40


def read(raw: object, type_: type[Wire], path: KeyPath, found: list[Mistake]) -> Wire | None:
    """The declaration, or None with its faults added to those found."""
    left = dict(raw) if isinstance(raw, Mapping) else raw
    dropped: set[str] = set()
    while True:
        try:
            read_ = msgspec.convert(left, type_)
        except msgspec.ValidationError as error:
            what, steps = _parts(str(error))
        else:
            return None if dropped else read_
        missing = _MISSING.fullmatch(what)
        if missing and not steps and missing["key"] in dropped:
            return None
        fault = _fault(what, steps, raw, type_)
        found.append(Mistake(path=(*path, *fault.path), error=fault.error))
        # Without the part at fault, what else is wrong shows; a part that is not there hides it.
        if not fault.path or not isinstance(left, dict):
            return None
        key = str(fault.path[0])
        del left[key]
        dropped.add(key)


def _parts(message: str) -> tuple[str, KeyPath]:
    found = _MESSAGE.fullmatch(message)
    if found is None:  # a form of message that is new to us is still worth showing
        return message, ()
    return found["what"], tuple(_steps(found["at"] or ""))


def _steps(at: str) -> Iterator[str | int]:
    for step in _STEP.finditer(at):
        yield step["key"] if step["index"] is None else int(step["index"])


def _fault(what: str, steps: KeyPath, raw: object, type_: type[msgspec.Struct]) -> Mistake:
    if unknown := _UNKNOWN.fullmatch(what):
        # Only the declaration's own fields are at hand here; a part's are few enough to look up.
        known = type_.__struct_fields__ if not steps else ()
        near = difflib.get_close_matches(unknown["key"], known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return Mistake(
            path=(*steps, unknown["key"]), error=InvalidFleetError(f"there is no such field{hint}")
        )
    if missing := _MISSING.fullmatch(what):
        return Mistake(
            path=steps, error=InvalidFleetError(f"the field {missing['key']} is missing")
        )
    choices = _CHOICES.get(str(steps[-1])) if steps else None
    expected = (
        f"expected {' or '.join(choices)}"
        if choices
        else re.sub(r", got `.*`$", "", what).replace("`", "").replace("Expected", "expected")
    )
    shown = _shown(_value(raw, steps))
    return Mistake(path=steps, error=InvalidFleetError(f"{expected}, got {shown}"))


def _value(raw: object, steps: KeyPath) -> object:
    for step in steps:
        if isinstance(raw, Mapping) and isinstance(step, str):
            raw = raw.get(step)
        elif isinstance(raw, list) and isinstance(step, int):
            raw = raw[step]
    return raw


def _shown(value: object) -> str:
    # Dates, which TOML has and JSON has not, are shown as they are written.
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
