"""The pages of the documentation, and what is in their blocks of code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
PAGES: Final = {
    str(path.relative_to(DOCS)): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
}
_BLOCK: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<title>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> Iterator[Block]:
    for page, text in PAGES.items():
        for found in _BLOCK.finditer(text):
            [title] = re.findall(r'title="([^"]*)"', found["title"]) or [""]
            line = text.count("\n", 0, found.start()) + 1
            yield Block(page, line, found["language"], title, found["text"])


def prose(text: str) -> str:
    """A page without its blocks."""
    return _BLOCK.sub("", text)
