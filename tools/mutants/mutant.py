"""A small wrong edit, and the tests that must catch it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    name: str
    file: str
    """Below `src/forewarned`."""
    old: str
    """Found exactly once in the file."""
    new: str
    breaks: str
    """The promise, by its number, and how."""
    tests: tuple[str, ...]
