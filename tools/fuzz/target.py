"""What is fuzzed."""

from collections.abc import Sequence
from typing import Protocol


class Target(Protocol):
    """A module of `targets` has these."""

    EXAMPLES: Sequence[bytes]
    """Inputs to begin with: those that reach most of the code."""

    def check(self, data: bytes) -> None:
        """Raises what is a defect. Whatever else goes wrong with the input, it keeps to itself."""
