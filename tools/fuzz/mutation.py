"""Inputs made from examples by chance, where nothing measures what they reach."""

import random
from collections.abc import Iterator, Sequence
from typing import Final

_ODD: Final = (*(bytes([odd]) for odd in b"\x00\xff\n'\"[]{}"), b"\r\n", b"-1", b"9" * 20)
_LONGEST: Final = 8192


def mutations(examples: Sequence[bytes], *, seed: int) -> Iterator[bytes]:
    """The examples themselves, then without end."""
    yield from examples
    chance = random.Random(seed)
    while True:
        data = chance.choice(examples)
        for _ in range(chance.choice((1, 1, 1, 2, 4, 8))):
            data = _mutated(data, chance, examples)
        yield data[:_LONGEST]


def _mutated(data: bytes, chance: random.Random, examples: Sequence[bytes]) -> bytes:
    at = chance.randint(0, len(data))
    to = chance.randint(at, min(len(data), at + 20))
    match chance.randrange(6):
        case 0:
            return data[:at] + data[to:]
        case 1:
            return data[:at] + chance.randbytes(chance.randint(1, 4)) + data[to:]
        case 2:
            return data[:at] + data[at:to] * chance.randint(2, 5) + data[to:]
        case 3:
            return data[:at] + chance.choice(_ODD) + data[at:]
        case 4:
            other = chance.choice(examples)
            return data[:at] + other[chance.randint(0, len(other)) :]
        case _:
            flipped = bytes(byte ^ 1 << chance.randrange(8) for byte in data[at : at + 1])
            return data[:at] + flipped + data[at + 1 :]
