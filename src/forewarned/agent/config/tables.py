"""A table of the agent's file as a Struct, with all that is wrong with it at once.

msgspec stops at the first mistake, and knows no span like `30s`. So each field is read by itself:
a person need not mend a file one run at a time. A type with a `parse` of its own reads text.
"""

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from forewarned.config.durations import parse_duration
from forewarned.config.toml import KeyPath

S = TypeVar("S", bound=msgspec.Struct)

LONGEST_SPAN: Final = timedelta(days=366)
_LONGEST_VALUE: Final = 40
_PLACE: Final = re.compile(r" - at .*$")
_GOT: Final = re.compile(r", got `.*`$")
_WRONG: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    path: KeyPath
    why: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the tables of one file."""

    folder: Path
    """What relative paths are relative to: the file's own place."""
    faults: list[Mistake] = field(default_factory=list)

    def blame(self, path: KeyPath, why: str) -> None:
        self.faults.append(Mistake(path=path, why=why))

    def table(self, raw: object, type_: type[S], path: KeyPath) -> S | None:
        """None where something is wrong with it; what, is among the faults."""
        if not isinstance(raw, Mapping):
            self.blame(path, f"expected a table, got {shown(raw)}")
            return None
        before = len(self.faults)
        fields = {each.encode_name: each for each in msgspec.structs.fields(type_)}
        for key in raw.keys() - fields.keys() - {_tag_field(type_)}:
            self.blame((*path, key), f"there is no such field{did_you_mean(key, fields)}")
        hints = get_type_hints(type_, include_extras=True)
        values: dict[str, Any] = {}
        for key, each in fields.items():
            if key in raw:
                values[each.name] = self._value(raw[key], hints[each.name], (*path, key))
            elif each.required:
                self.blame(path, f"the field {key} is missing")
        if len(self.faults) > before:
            return None
        try:
            return type_(**values)
        except ValueError as error:
            self.blame(path, str(error))
            return None

    def _value(self, raw: object, type_: Any, path: KeyPath) -> Any:
        """`_WRONG` where it can't be read; what is wrong is among the faults by then."""
        try:
            return self._read(raw, type_, path)
        except ValueError as error:
            self.blame(path, str(error))
            return _WRONG

    def _read(self, raw: object, type_: Any, path: KeyPath) -> Any:
        plain, *metas = get_args(type_) if get_origin(type_) is Annotated else (type_,)
        origin = get_origin(plain)
        if origin in {Union, UnionType}:
            members = [each for each in get_args(plain) if each is not NoneType]
            if len(members) == 1:
                # What was said of the union as a whole is meant of its one member.
                return self._read(raw, _annotated(members[0], metas), path)
            if all(_tag_field(each) for each in members):
                return self._tagged(raw, members, path)
        if origin is tuple and get_args(plain)[1:] == (Ellipsis,):
            return self._elements(raw, get_args(plain)[0], metas, path)
        if isinstance(plain, type):
            if issubclass(plain, msgspec.Struct):
                return self.table(raw, plain, path)
            if (parse := _parser(plain)) is not None:
                return parse(raw)
            if issubclass(plain, Path):
                return self.folder / _text(raw, "a path")
        return _convert(raw, type_)

    def _tagged(self, raw: object, members: list[Any], path: KeyPath) -> Any:
        if not isinstance(raw, Mapping):
            return self._not(path, "a table", raw)
        tags = {str(each.__struct_config__.tag): each for each in members}
        kind = raw.get(_tag_field(members[0]))
        if not isinstance(kind, str) or kind not in tags:
            raise ValueError(f"expected a kind of {any_of(tags)}, got {shown(kind)}")
        return self.table(raw, tags[kind], path)

    def _elements(self, raw: object, type_: Any, metas: list[Any], path: KeyPath) -> Any:
        if not isinstance(raw, list):
            return self._not(path, "a list", raw)
        if len(raw) < max((meta.min_length or 0 for meta in metas), default=0):
            return self._not(path, "a longer list", raw)
        return tuple(self._value(each, type_, (*path, at)) for at, each in enumerate(raw))

    def _not(self, path: KeyPath, what: str, raw: object) -> object:
        self.blame(path, f"expected {what}, got {shown(raw)}")
        return _WRONG


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(wrong, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def any_of(names: Collection[str]) -> str:
    """`a, b or c`"""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: object) -> str:
    # Dates, which TOML has and JSON has not, are shown as they are written.
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _tag_field(type_: Any) -> str | None:
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return None
    found: str | None = type_.__struct_config__.tag_field
    return found


def _annotated(type_: Any, metas: list[Any]) -> Any:
    for meta in metas:
        type_ = Annotated[type_, meta]
    return type_


def _parser(type_: type) -> Callable[[object], object] | None:
    """For what msgspec would not read as people write it."""
    if issubclass(type_, timedelta):
        return _span
    if issubclass(type_, StrEnum):
        return lambda raw: _choice(raw, type_)
    parse: Callable[[str], object] | None = getattr(type_, "parse", None)
    return None if parse is None else lambda raw: parse(_text(raw, "text"))


def _span(raw: object) -> timedelta:
    span = parse_duration(_text(raw, "a duration like 90s"))
    if span > LONGEST_SPAN:
        raise ValueError(f"expected a duration of a year at most, got {shown(raw)}")
    return span


def _choice(raw: object, choices: type[StrEnum]) -> StrEnum:
    for choice in choices:
        if isinstance(raw, str) and raw.lower() == choice.lower():
            return choice
    near = did_you_mean(raw, choices) if isinstance(raw, str) else ""
    raise ValueError(f"expected {any_of([*choices])}, got {shown(raw)}{near}")


def _text(raw: object, what: str) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError(f"expected {what}, got {shown(raw)}")
    return raw


def _convert(raw: object, type_: Any) -> Any:
    try:
        return msgspec.convert(raw, type_)
    except msgspec.ValidationError as error:
        what = _GOT.sub("", _PLACE.sub("", str(error))).replace("`", "")
        raise ValueError(f"{what[:1].lower()}{what[1:]}, got {shown(raw)}") from error
