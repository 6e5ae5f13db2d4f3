"""What every row is given: how long, how large, where, and on which cores."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import product
from benchmarks.machine import Cores
from benchmarks.product import Product


class NotOfferedError(Exception):
    """The server can't do this yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    cores: Cores
    rounds: int
    seconds: float
    """of load in each round"""
    shrink: int
    """fleets and crowds are this many times smaller than the goals ask for: 1 but for --quick"""
    scratch: Path
    """on the disk that the durable rows are about"""
    flags: tuple[str, ...]
    """for `forewarned serve`, beside the usual ones"""
    say: Callable[[str], None]

    def scaled(self, count: int) -> int:
        return max(1, count // self.shrink)

    def serving(self, name: str, fleet: str, *flags: str) -> AbstractContextManager[Product]:
        return product.serving(
            self.scratch / name, fleet, *flags, *self.flags, prefix=self.cores.serving
        )


def many(count: int, thing: str) -> str:
    return f"{count:,} {thing}"
