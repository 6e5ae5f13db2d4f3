"""The modules of the tree, as the tests of its rules read them."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SRC: Final = ROOT / "src" / "forewarned"


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


@functools.cache  # most rules look at every module
def parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


def imports(module: Path) -> Iterator[str]:
    """Absolute names of what a module imports, wherever in it the import stands."""
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
