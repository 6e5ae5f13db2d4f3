"""TOML files: each is read, or refused with its mistakes and their lines."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from forewarned.agent.config import settings as agent_settings
from forewarned.config.key_lines import key_lines
from forewarned.config.mistakes import MistakesError
from forewarned.config.toml import TomlFile
from forewarned.control.fleet.file import parse_fleet
from forewarned.scenarios import file as scenario_file
from tests.config.test_toml import TRICKY, paths

ROOT: Final = Path(__file__).resolve().parents[3]
_FILES: Final = sorted((ROOT / "examples").rglob("*.toml"))
_SCENARIOS: Final = sorted((ROOT / "src/forewarned/scenarios/standard").glob("*.toml"))[:3]

EXAMPLES: Final = (
    TRICKY.encode(),
    *(path.read_bytes() for path in (*_FILES, *_SCENARIOS)),
    b"a = 1",
    b"[[vms]]\nname = 'a'\n",
    b"\xef\xbb\xbfa=1",
)


def check(data: bytes) -> None:
    try:
        text = data.decode("utf-8-sig")
        file = TomlFile.parse(text, source="file", error=MistakesError)
    except (UnicodeDecodeError, MistakesError):
        return
    lines = key_lines(text)
    wanted = set(paths(file.tables))
    assert set(lines) == wanted, (
        f"keys without a line, or lines without a key: {wanted ^ set(lines)}"
    )
    last = text.count("\n") + 1
    assert all(1 <= line <= last for line in lines.values())
    for read in _READERS:
        try:
            read(text)
        except MistakesError as error:
            mistakes = error.mistakes
            assert mistakes, "it was refused, and nothing is wrong"


_READERS: Final[tuple[Callable[[str], object], ...]] = (
    lambda text: agent_settings.parse(text, path=Path("/etc/forewarned/agent.toml")),
    lambda text: parse_fleet(text, source="fleet.toml"),
    scenario_file.parse,
)
