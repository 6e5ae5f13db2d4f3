"""What the manual promises, and what `--help` does."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from forewarned.cli import cli
from forewarned.cli.app import COMMANDS
from forewarned.cli.failures import MEANINGS
from forewarned.runtime.settings import SETTINGS

MANUAL = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
EVERYWHERE = {"--json", "--control", "--token-file", "--ca"}


def commands(
    command: click.Command = cli, path: tuple[str, ...] = ("forewarned",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(command)
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None, name
            yield from commands(part, (*path, name))


ALL = dict(commands())


def section(path: tuple[str, ...]) -> str:
    """The part of the manual that is about a command."""
    heading = f"## {' '.join(path[:2])}" if path[1:] else "## Everywhere"
    assert f"\n{heading}\n" in MANUAL, f"the manual has no section {heading!r}"
    return re.split(r"\n## ", MANUAL.partition(f"\n{heading}\n")[2])[0]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_and_every_flag_is_in_the_manual(path: tuple[str, ...]) -> None:
    written = section(path)
    # The manual has a page for settings, and settings have a test that it is complete.
    settings = {setting.flag for setting in SETTINGS if path[-1] in {"serve", "settings", "doctor"}}
    flags = {
        flag
        for parameter in ALL[path].params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
    } - settings

    missing = {flag for flag in flags - EVERYWHERE if f"`{flag}" not in written}

    assert missing == set()
    assert " ".join(path) in MANUAL


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_words_of_help_and_names_its_exit_codes(path: tuple[str, ...]) -> None:
    shown = ALL[path].get_help(click.Context(ALL[path], info_name=path[-1]))

    assert ALL[path].help
    assert "Exit codes: 0 done, 1 refused" in " ".join(shown.split())


@pytest.mark.parametrize("path", [path for path in ALL if len(path) == 2], ids=" ".join)
def test_every_command_comes_with_an_example(path: tuple[str, ...]) -> None:
    assert re.search(rf"```[^`]*{' '.join(path)}", section(path))


def test_help_and_manual_say_that_an_operator_completes_events_in_service_mode() -> None:
    complete = ALL["forewarned", "complete"]
    [mode] = [setting for setting in SETTINGS if setting.name == "mode"]

    assert "an operator does the work" in " ".join((complete.help or "").split())
    assert "an operator does the work and completes events" in mode.help
    assert "an operator does the work" in " ".join(section(("forewarned", "complete")).split())


def test_the_manual_lists_the_exit_codes() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", MANUAL, re.MULTILINE))

    assert rows == {str(int(code)): meaning for code, meaning in MEANINGS.items()}


def test_the_manual_names_no_command_that_is_not_there() -> None:
    named = set(re.findall(r"^## forewarned (\w+)$", MANUAL, re.MULTILINE))

    assert named == set(COMMANDS)


def test_summaries_are_not_cut_off_in_the_list_of_commands() -> None:
    shown = cli.get_help(click.Context(cli, info_name="forewarned", terminal_width=80))

    assert "..." not in shown.partition("Commands:")[2]
