"""Tables of a TOML file, or of JSON, as Structs: every mistake in them is found in one pass.

msgspec stops at the first mistake, and does not know durations like `30s`. So each field is read by
itself, according to its type. A callable in a field's `Annotated` parses its value; so does the
class method `parse` of a field's type, from text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

import msgspec

from forewarned.config.durations import parse_duration
from forewarned.config.mistakes import ExpectedError, KeyPath, Mistake, any_of, did_you_mean, shown
from forewarned.config.values import one_of

S = TypeVar("S", bound=msgspec.Struct)

LONGEST_DURATION: Final = timedelta(days=366)
_PLACE: Final = re.compile(r" - at .*$")
_GOT: Final = re.compile(r", got `.*`$")
_TYPE: Final = re.compile(r"`([^`]*)`")
_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_WRONG: Final = object()


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads the tables of one file."""

    folder: Path = Path()
    """What relative paths are relative to: the file's own directory."""
    mistakes: list[Mistake] = field(default_factory=list)

    def refuse(self, path: KeyPath, why: str) -> None:
        self.mistakes.append(Mistake(path=path, why=why))

    def table(self, raw: object, type_: type[S], path: KeyPath) -> S | None:
        """None where it has mistakes, which are then among `mistakes`."""
        if not isinstance(raw, Mapping):
            self.refuse(path, f"expected a table, got {shown(raw)}")
            return None
        before = len(self.mistakes)
        fields = {each.encode_name: each for each in msgspec.structs.fields(type_)}
        known = {*fields, _tag_field(type_)}
        for key in raw:
            if key not in known:
                self.refuse((*path, key), f"there is no such field{did_you_mean(key, fields)}")
        values: dict[str, Any] = {}
        for key, each in fields.items():
            if key in raw:
                values[each.name] = self._value(raw[key], each.type, (*path, key))
            elif each.required:
                self.refuse(path, f"the field '{key}' is missing")
        if len(self.mistakes) > before:
            return None
        try:
            return type_(**values)
        except ValueError as error:
            self.refuse(path, str(error))
            return None

    # Any, here and below: a type as it is written, and a value of that type.
    def _value(self, raw: object, type_: Any, path: KeyPath) -> Any:
        """`_WRONG` where there is a mistake, which is then among `mistakes`."""
        try:
            return self._read(raw, type_, path)
        except ExpectedError as error:
            self.refuse(path, f"expected {error.what}, got {shown(raw)}{error.hint}")
        except ValueError as error:
            self.refuse(path, str(error))
        return _WRONG

    def _read(self, raw: object, type_: Any, path: KeyPath) -> Any:
        plain, *metas = get_args(type_) if get_origin(type_) is Annotated else (type_,)
        for meta in metas:
            if callable(meta):
                return meta(raw)
        origin = get_origin(plain)
        if origin in {Union, UnionType}:
            return self._member(raw, plain, metas, path)
        if origin in {tuple, list}:
            return self._elements(raw, plain, metas, path)
        if origin is dict and isinstance(raw, Mapping):
            value_type = get_args(plain)[1]
            return {key: self._value(raw[key], value_type, (*path, key)) for key in raw}
        if isinstance(plain, type):
            if issubclass(plain, msgspec.Struct):
                return self.table(raw, plain, path)
            if (parse := _parser(plain)) is not None:
                return parse(raw)
            if issubclass(plain, Path):
                return self.folder / _text(raw, "a path")
        return _convert(raw, type_)

    def _member(self, raw: object, union: Any, metas: list[Any], path: KeyPath) -> Any:
        members = [each for each in get_args(union) if each is not NoneType]
        if raw is None and len(members) < len(get_args(union)):
            return None
        if len(members) == 1:
            # What is said of the union as a whole is meant of its one member.
            return self._read(raw, _annotated(members[0], metas), path)
        tables = [
            each for each in members if isinstance(each, type) and issubclass(each, msgspec.Struct)
        ]
        if len(tables) == len(members):
            return self._tagged(raw, members, path)
        if tables and isinstance(raw, Mapping):
            return self.table(raw, tables[0], path)
        others = [each for each in members if each not in tables]
        if tables and len(others) == 1:
            return self._read(raw, _annotated(others[0], metas), path)
        return _convert(raw, _annotated(union, metas))

    def _tagged(self, raw: object, members: list[Any], path: KeyPath) -> Any:
        if not isinstance(raw, Mapping):
            raise ExpectedError("a table")
        tags = {str(each.__struct_config__.tag): each for each in members}
        field = _tag_field(members[0])
        kind = raw.get(field)
        if not isinstance(kind, str) or kind not in tags:
            hint = did_you_mean(kind, tags) if isinstance(kind, str) else ""
            raise ValueError(f"expected {field} to be {any_of(tags)}, got {shown(kind)}{hint}")
        return self.table(raw, tags[kind], path)

    def _elements(self, raw: object, type_: Any, metas: list[Any], path: KeyPath) -> Any:
        if not isinstance(raw, list):
            raise ExpectedError("a list")
        least = max((meta.min_length or 0 for meta in metas), default=0)
        if len(raw) < least:
            raise ExpectedError(f"a list of at least {least} item{'s' if least > 1 else ''}")
        element = get_args(type_)[0]
        return get_origin(type_)(
            self._value(each, element, (*path, at)) for at, each in enumerate(raw)
        )


def _tag_field(type_: type[msgspec.Struct]) -> str | None:
    return type_.__struct_config__.tag_field


def _annotated(type_: Any, metas: list[Any]) -> Any:
    for meta in metas:
        type_ = Annotated[type_, meta]
    return type_


def _parser(type_: type) -> Callable[[object], object] | None:
    """For what msgspec would not read as people write it."""
    if issubclass(type_, timedelta):
        return _duration
    if issubclass(type_, StrEnum):
        return one_of(type_)
    parse: Callable[[str], object] | None = getattr(type_, "parse", None)
    return None if parse is None else lambda raw: parse(_text(raw, "text"))


def _duration(raw: object) -> timedelta:
    duration = parse_duration(_text(raw, "a duration like 90s"))
    if duration > LONGEST_DURATION:
        raise ExpectedError("a duration of at most a year")
    return duration


def _text(raw: object, what: str) -> str:
    if not isinstance(raw, str) or not raw:
        raise ExpectedError(what)
    return raw


def _convert(raw: object, type_: Any) -> Any:
    try:
        return msgspec.convert(raw, type_)
    except msgspec.ValidationError as error:
        message = _GOT.sub("", _PLACE.sub("", str(error))).removeprefix("Expected ")
        raise ExpectedError(_TYPE.sub(_in_words, message)) from error


def _in_words(types: re.Match[str]) -> str:
    names = [name for name in types[1].split(" | ") if name != "null"]
    return any_of([_WORDS.get(name, name) for name in names])
