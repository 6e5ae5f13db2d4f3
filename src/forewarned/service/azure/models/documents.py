"""Clients' JSON, as they send it and as it is stored: read with care, and merged.

A `PUT` of what there is merges as a `PATCH` does. It is what Azure does for scale sets, and what
`az` counts on: it scales a set by a `PUT` without `properties`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from forewarned.core.errors import Category, RefusalError
from forewarned.service.azure.resource_ids import same
from forewarned.service.records import Declaration

T = TypeVar("T")

# What a client sent is of any shape until it has been read.
Json = dict[str, Any]

_LONGEST_SHOWN: Final = 60
_FLAGS: Final = {"true": True, "false": False}


class InvalidPropertyError(RefusalError, category=Category.INVALID):
    """A property of a resource has a value that it can't have."""

    path: str = ""
    """Where it is in the document: `properties.orchestrationMode`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class PropertyChangeError(RefusalError, category=Category.CONFLICT):
    """A property was settled when the resource was created."""

    path: str = ""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"Changing property '{path}' is not allowed: delete the resource and create another."
        )
        self.path = path


class Fields:
    """A JSON object, and where it is in the document. Null means the same as absent."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self._path = path

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._values if name in self)

    def where(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def object(self, name: str) -> "Fields":
        """Empty if there is none."""
        value = self._typed(name, dict, "expected an object")
        return Fields(value or {}, self.where(name))

    def objects(self, name: str) -> list["Fields"]:
        """The objects of a list; none if there is no list."""
        found = self._items(name, dict, "expected a list of objects") or []
        return [Fields(each, f"{self.where(name)}[{at}]") for at, each in enumerate(found)]

    def raw(self, name: str) -> Any:  # JSON
        """A value of any shape; None if there is none."""
        return self._values.get(name)

    def text(self, name: str, *, longest: int = 256) -> str | None:
        value = self.word(name)
        if value is not None and (not value.isprintable() or len(value) > longest):
            raise self.wrong(name, f"expected at most {longest} printable characters")
        return value

    def word(self, name: str) -> str | None:
        """A string of a stored document, whatever it holds."""
        return self._typed(name, str, "expected a string")

    def texts(self, name: str) -> tuple[str, ...] | None:
        found = self._items(name, str, "expected a list of strings")
        return None if found is None else tuple(found)

    def flag(self, name: str) -> bool | None:
        """Some templates have it as a string."""
        value = self._values.get(name)
        if value is None or isinstance(value, bool):
            return value
        known = _FLAGS.get(value.lower()) if isinstance(value, str) else None
        if known is None:
            raise self.wrong(name, "expected true or false")
        return known

    def number(self, name: str) -> int | None:
        value = self._typed(name, int, "expected a whole number")
        if isinstance(value, bool):
            raise self.wrong(name, "expected a whole number")
        return value

    def _typed(self, name: str, type_: type[T], expected: str) -> T | None:
        value = self._values.get(name)
        if value is None or isinstance(value, type_):
            return value
        raise self.wrong(name, expected)

    def _items(self, name: str, type_: type[T], expected: str) -> list[T] | None:
        found = self._typed(name, list, expected)
        if found is not None and not all(isinstance(each, type_) for each in found):
            raise self.wrong(name, expected)
        return found

    def one_of(self, name: str, known: Mapping[str, str]) -> str | None:
        """A word in any letter case, in the spelling of `known`, which is by lower-case word."""
        text = self.text(name)
        if text is None:
            return None
        found = known.get(text.lower())
        if found is None:
            words = ", ".join(dict.fromkeys(known.values()))
            raise self.wrong(name, f"expected one of {words}")
        return found

    def wrong(self, name: str, expected: str) -> InvalidPropertyError:
        where = self.where(name)
        shown = repr(self._values.get(name))
        if len(shown) > _LONGEST_SHOWN:
            shown = f"{shown[:_LONGEST_SHOWN]}…"
        return InvalidPropertyError(
            where, f"The value {shown} of parameter '{where}' is invalid: {expected}."
        )


def decoded(declaration: Declaration | None) -> Json:
    """What is declared; empty where nothing is."""
    text = "" if declaration is None else declaration.document
    document: Json = msgspec.json.decode(text) if text else {}
    return document


def encoded(document: Mapping[str, Any]) -> str:
    return msgspec.json.encode(document).decode()


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """What is in the new document, and was not in the old one or was different there."""
    found: Json = {}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := changes(before, value):
                found[name] = inner
        elif name not in old or value != before:
            found[name] = value
    return found


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """Objects merge, all else replaces, an explicit null removes."""
    result = dict(old)
    for name, value in new.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = old.get(name)
            result[name] = merged(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result


def merged_resource(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """A whole resource. Tags are replaced as a whole: that is how one of them is removed."""
    result = merged({**old, "tags": {}} if "tags" in new else old, new)
    if new.get("tags", {}) is None:
        result["tags"] = {}
    return result


def without(document: Mapping[str, Any], *paths: str) -> Json:
    """A copy of the document without what these paths (`properties.vmId`) name.

    In any letter case, and in each item of a list on the way: ARM reads names so, and a secret that
    a client spelled in its own way is as much of one.
    """
    result = dict(document)
    for path in paths:
        first, _, rest = path.partition(".")
        for name in [known for known in result if same(known, first)]:
            if not rest:
                del result[name]
            else:
                result[name] = _inside(result[name], rest)
    return result


def _inside(value: Any, path: str) -> Any:  # JSON
    if isinstance(value, dict):
        return without(value, path)
    if isinstance(value, list):
        return [_inside(each, path) for each in value]
    return value


def at(document: Mapping[str, Any], path: str) -> Any:  # JSON
    """What a path (`properties.vmId`) names; None where nothing is there."""
    here: Any = document
    for name in path.split("."):
        here = here.get(name) if isinstance(here, dict) else None
    return here


def object_in(of: Mapping[str, Any], name: str) -> Json:
    """By name in any letter case: models are stored as clients send them. Empty if absent."""
    found = _value_in(of, name)
    return found if isinstance(found, dict) else {}


def objects_in(of: Mapping[str, Any], name: str) -> list[Json]:
    """The same for a list of objects."""
    found = _value_in(of, name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _value_in(of: Mapping[str, Any], name: str) -> Any:  # JSON
    return next((value for key, value in of.items() if same(key, name)), None)


def put_at(document: Json, path: str, value: object) -> None:
    """Set what a path names, making the objects on the way."""
    *outer, last = path.split(".")
    for name in outer:
        inner = document.get(name)
        # A copy: what is shared with the document before must not change with it.
        document[name] = document = dict(inner) if isinstance(inner, dict) else {}
    document[last] = value
