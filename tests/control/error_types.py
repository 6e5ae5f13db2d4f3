"""Every type of error that the source defines, whichever modules a test has imported."""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import TypeVar

import forewarned.console
import forewarned.control
import forewarned.core
import forewarned.security
import forewarned.service

T = TypeVar("T", bound=Exception)


def errors_of(kind: type[T]) -> set[type[T]]:
    """All subclasses of `kind` in the source."""
    _import_all()
    return {each for each in _subclasses(kind) if each.__module__.startswith("forewarned.")}


def _subclasses(kind: type[T]) -> Iterator[type[T]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


@cache
def _import_all() -> None:
    rooms = (
        forewarned.console,
        forewarned.control,
        forewarned.core,
        forewarned.security,
        forewarned.service,
    )
    for room in rooms:
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(found.name)
