"""The project that docs/test-your-handler.md builds up, file by file."""

import re
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "test-your-handler.md"
_PYTHON: Final = re.compile(
    r'^```python(?: title="(?P<name>[\w.-]+)")?\n(?P<text>.*?)^```', flags=re.DOTALL | re.MULTILINE
)
EVERY_KIND: Final = ("test_handler.py", "test_kinds.py")
"""Freeze, Reboot approved and timed out, Preempt, Terminate, cancellation, a broken host."""


def write(folder: Path) -> list[str]:
    """Returns the names of the files."""
    files: dict[str, str] = {}
    for found in _PYTHON.finditer(PAGE.read_text()):
        assert found["name"], "every snippet of the guide is a file"
        assert found["name"] not in files
        files[found["name"]] = found["text"]
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return list(files)
