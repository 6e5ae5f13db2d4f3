"""`forewarned init`: every file that it writes is one that its reader takes."""

from pathlib import Path

import pytest

from forewarned.agent.config.settings import load as load_agent
from forewarned.cli.init.command import AgentCase, FleetCase, SettingsCase
from forewarned.control.fleet.file import load_fleet
from forewarned.runtime.settings import load as load_settings
from tests.cli.served import invoke

CASES = [
    *(("fleet", case.value) for case in FleetCase),
    *(("agent", case.value) for case in AgentCase),
    *(("settings", case.value) for case in SettingsCase),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_what_it_writes_is_read_without_a_mistake(kind: str, case: str) -> None:
    done = invoke("init", kind, "made.toml", "--for", case)

    assert done.exit_code == 0, done.stderr
    path = Path("made.toml")
    match kind:
        case "fleet":
            assert load_fleet(path).size() > 3
        case "agent":
            assert load_agent(path, environ={}).rules
        case _:
            assert load_settings(flags={}, environ={}, path=path).file == path


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_every_file_explains_itself(kind: str, case: str) -> None:
    lines = invoke("init", kind, "-", "--for", case).stdout.splitlines()

    assert lines[0].startswith("# ")
    assert "docs/" in "\n".join(lines)
    assert sum("#" in line for line in lines) >= 4


@pytest.mark.parametrize(
    ("kind", "name"),
    [("fleet", "fleet.toml"), ("agent", "agent.toml"), ("settings", "forewarned.toml")],
)
def test_it_writes_where_the_file_is_looked_for_and_never_over_one_that_is_there(
    kind: str, name: str
) -> None:
    first = invoke("init", kind)
    Path(name).write_text("# mine\n")
    again = invoke("init", kind)

    assert first.exit_code == 0, first.stderr
    assert again.exit_code == 1
    assert f"{name} already exists" in again.stderr
    assert Path(name).read_text() == "# mine\n"


def test_a_directory_that_is_not_there_is_named() -> None:
    done = invoke("init", "fleet", "gone/fleet.toml")

    assert done.exit_code == 1
    assert "can't write gone/fleet.toml (No such file or directory)" in done.stderr
