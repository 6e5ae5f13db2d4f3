"""Copies of frozen values with some fields changed, in less than half of the usual time.

A decision is little else than such copies, and the standard library's `replace` goes through the
constructor, which for a frozen class sets each field by a call of its own. This one copies slots.
"""

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

__all__ = ["replace"]

if TYPE_CHECKING:
    # To type checkers it is the standard one, so that they know every field and its type.
    from dataclasses import replace
else:

    def replace(value, /, **changes):
        """Only for slotted dataclasses that do nothing when they are made but take their fields."""
        kind = type(value)
        slots = _slots(kind)
        copy = _new(kind)
        for name, (take, put) in slots.items():
            put(copy, changes.pop(name) if name in changes else take(value))
        if changes:
            raise TypeError(f"{kind.__name__} has no field {next(iter(changes))!r}")
        return copy


_new = object.__new__


@cache
def _slots(kind: type) -> dict[str, tuple[Any, Any]]:
    """How to read and how to set each field."""
    slots = ((field.name, getattr(kind, field.name)) for field in fields(kind))
    return {name: (slot.__get__, slot.__set__) for name, slot in slots}
