"""The names that other people's programs use, and how they call them, one a line.

    .venv/bin/python -m tests.public_surface > tests/public_surface.txt

writes them anew, after a change that docs/releases.md allows.
"""

import enum
import inspect
from collections.abc import Iterator
from types import ModuleType

import forewarned.client
import forewarned.testing


def surface() -> Iterator[str]:
    for package in (forewarned.client, forewarned.testing):
        yield from _names_of(package)


def _names_of(package: ModuleType) -> Iterator[str]:
    for name in package.__all__:
        found = getattr(package, name)
        place = f"{package.__name__}.{name}"
        if not inspect.isclass(found):
            yield f"{place}{_arguments(found)}"
        elif issubclass(found, enum.Enum):
            yield from (f"{place}.{member.name} = {member.value!r}" for member in found)
        else:
            # Errors are caught, not made.
            is_made = not issubclass(found, Exception)
            bases = ", ".join(base.__name__ for base in found.__bases__)
            yield f"{place}{_arguments(found) if is_made else ''} of {bases}"
            yield from _members_of(found, place)


def _members_of(kind: type, place: str) -> Iterator[str]:
    for name, member in inspect.getmembers(kind):
        if name.startswith("_") or _owner(kind, name).startswith(("builtins", "enum")):
            continue
        is_called = inspect.isfunction(member) or inspect.ismethod(member)
        yield f"{place}.{name}{_arguments(member) if is_called else ''}"


def _owner(kind: type, name: str) -> str:
    return next(each.__module__ for each in kind.__mro__ if name in vars(each))


def _arguments(called: object) -> str:
    """Names, kinds, and which may be left out. How Python writes annotations differs by version."""
    assert callable(called)
    signature = inspect.signature(called)
    plain = [
        each.replace(
            annotation=inspect.Parameter.empty,
            default=... if each.default is not inspect.Parameter.empty else each.default,
        )
        for each in signature.parameters.values()
    ]
    empty = inspect.Signature.empty
    return str(signature.replace(parameters=plain, return_annotation=empty)).replace(
        "Ellipsis", "…"
    )


if __name__ == "__main__":
    print("\n".join(surface()))  # noqa: T201
