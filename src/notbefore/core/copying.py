"""Copies of frozen values with some fields changed, in less than half of the usual time.

A decision is little else than such copies, and the standard library's `replace` goes through the
constructor, which for a frozen class sets each field by a call of its own. This one copies slots.
"""

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["replace"]

if TYPE_CHECKING:
    # To type checkers it is the standard one, so that they know every field and its type.
    from dataclasses import replace
else:

    def replace(value, /, **changes):
        """Only for slotted dataclasses that do nothing when they are made but take their fields."""
        kind = type(value)
        take_all, put_all, put = _slots(kind)
        copy = _new(kind)
        for put_one, held in zip(put_all, take_all(value), strict=False):
            put_one(copy, held)
        for name, changed in changes.items():
            if name not in put:
                raise TypeError(f"{kind.__name__} has no field {name!r}")
            put[name](copy, changed)
        return copy


_new = object.__new__


@cache
def _slots(kind: type) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """How to read all fields at once, how to set each in the same order, and how by its name."""
    names = [field.name for field in fields(kind)]
    put = {name: getattr(kind, name).__set__ for name in names}
    # The first once more, and in vain: of a single field it would give the bare value.
    return attrgetter(*names, names[0]), tuple(put.values()), put
