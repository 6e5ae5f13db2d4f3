"""A digest of a plan, by which a server knows that it has applied it before.

Invariant: a new version of Forewarned makes the same digest of the same plan. Otherwise the first
start after an upgrade would apply it again, and bring back VMs that were terminated since. So a
field counts only where it differs from its default: one that the old version did not have is not
in its plans.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING

from forewarned.service.fleet.declaration import FleetPlan

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def digest(plan: FleetPlan) -> str:
    return hashlib.sha256(repr(canonical(plan)).encode()).hexdigest()


def canonical(value: object) -> object:
    """Made of tuples, texts and numbers alone, whose `repr` no version of Python changes."""
    # Most are plain texts, and there may be millions.
    if type(value) is str or value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return tuple(map(canonical, value))
    if isinstance(value, Mapping):
        return tuple(sorted((str(key), canonical(each)) for key, each in value.items()))
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(_differing(value))
    return str(value)


def _differing(value: "DataclassInstance") -> Iterator[tuple[str, object]]:
    for name, default in _defaults(type(value)):
        found = getattr(value, name)
        if found is not default and found != default:
            yield name, canonical(found)


@cache
def _defaults(type_: "type[DataclassInstance]") -> tuple[tuple[str, object], ...]:
    """In the order of their names: that of the fields may change."""
    return tuple(sorted(((each.name, _default(each)) for each in fields(type_)), key=itemgetter(0)))


def _default(field: "Field[object]") -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
