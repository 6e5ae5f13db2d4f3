"""Copies of frozen values with some fields changed, quicker than the standard way.

A decision is little else than such copies, and the standard library's `replace` goes through the
constructor, which for a frozen class sets each field by a call of its own. This one copies slots,
by a function that is written for each class and set of fields when it is first asked for: the way
in which `dataclass` itself makes constructors.
"""

from collections.abc import Callable
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
        return _copier(type(value), *changes)(value, **changes)


@cache
def _copier(kind: type, *changed: str) -> Callable[..., Any]:
    """Takes a value of this class, and its new fields by name."""
    names = [field.name for field in fields(kind)]
    for name in changed:
        if name not in names:
            raise TypeError(f"{kind.__name__} has no field {name!r}")
    sources = [name if name in changed else f"_value.{name}" for name in names]
    lines = (
        f"def _copy(_value, /, {', '.join(changed)}):",
        "    _made = _new(_kind)",
        *(f"    _put_{name}(_made, {source})" for name, source in zip(names, sources, strict=True)),
        "    return _made",
    )
    known: dict[str, Any] = {f"_put_{name}": getattr(kind, name).__set__ for name in names}
    known |= {"_new": object.__new__, "_kind": kind}
    # All that is put into these lines are names of fields, looked at above.
    exec("\n".join(lines), known)  # noqa: S102
    written: Callable[..., Any] = known["_copy"]
    return written
