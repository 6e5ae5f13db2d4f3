"""Every `forewarned …` that readers are told to type is a command, with flags that it has.

Readers of pages, of the files that users begin with, and of the program's own messages.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Final

import click
import pytest

from forewarned.cli import cli
from forewarned.runtime.settings import SETTINGS
from tests.docs.pages import PAGES, ROOT, Block, blocks, prose

LANGUAGES: Final = {"", "sh", "console", "yaml", "groovy", "ini"}
# Not where it is a user, a database, a volume or a namespace: `sudo -u forewarned forewarned doctor`.
_PROGRAM: Final = re.compile(
    r"(?:^|(?<=[\s('\"=]))(?<!--namespace )(?:/?[\w.-]+/)*forewarned(?:-agent\.pyz)?(?= +[a-z]+(?: |$|[);]))"
    r"(?! +forewarned)"
)
_INLINE: Final = re.compile(r"`(?:\.venv/bin/)?(forewarned [a-z][^`]*)`")
# A word in capitals, dots or braces stands for something that the reader has to put there.
_PLACEHOLDER: Final = re.compile(r"…|\.\.\.|^[A-Z]+$|[{<]")
_TAKE_SETTINGS: Final = {"serve", "settings", "doctor"}
_README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
# In a comment of its own, or in one's text.
_IN_A_COMMENT: Final = re.compile(
    r"^# +(forewarned [a-z].*)$|`(forewarned [a-z][^`]*)`", re.MULTILINE
)
_IN_A_MESSAGE: Final = re.compile(r"['`](forewarned [a-z][^'`\"]*)['`]")


def commands_of(block: Block) -> Iterator[list[str]]:
    whole = re.sub(r"\\\n\s*", " ", block.text)
    is_transcript = whole.startswith("$ ")
    for line in whole.splitlines():
        # In a transcript, only what follows the prompt is typed.
        if is_transcript and not line.startswith("$ "):
            continue
        is_comment = line.lstrip().startswith(("#", "//", "ExecStart=@"))
        for found in [] if is_comment else _PROGRAM.finditer(line):
            if words := words_of(line[found.end() :]):
                yield words


def words_of(rest: str) -> list[str]:
    """Up to whatever ends a command in a shell."""
    lexer = shlex.shlex(rest, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("();<>|&"):
                break
            words.append(word)
    except ValueError:
        # A quotation that began before the command, or goes on in the next line.
        words = rest.split("'", maxsplit=1)[0].split('"', maxsplit=1)[0].split()
    return words


def mistake(words: list[str], *, whole: bool) -> str | None:
    """What the command line would refuse, without running it. `whole`: nothing is left out."""
    command: click.Command = cli
    context = click.Context(command, info_name="forewarned")
    rest = words
    while isinstance(command, click.Group):
        try:
            _, rest, _ = command.make_parser(context).parse_args(list(rest))
        except click.UsageError as error:
            return error.format_message()
        if not rest:
            # `forewarned clock` and its like do something without a word; most groups don't.
            return "it needs a command" if whole and not command.invoke_without_command else None
        if _PLACEHOLDER.search(rest[0]):
            return None
        found = command.get_command(context, rest[0])
        if found is None:
            return f"there is no command {rest[0]!r}"
        command = found
        context = click.Context(command, parent=context, info_name=rest[0])
        rest = rest[1:]
    if any("…" in word for word in rest):
        rest = [word for word in rest if "…" not in word]
        whole = False
    try:
        values, _, _ = command.make_parser(context).parse_args(list(rest))
    except click.UsageError as error:
        return error.format_message() if whole or isinstance(error, click.NoSuchOption) else None
    return _bad_value(command, context, values, whole=whole)


def _bad_value(
    command: click.Command, context: click.Context, values: dict[str, object], *, whole: bool
) -> str | None:
    settings = {each.name: each for each in SETTINGS} if command.name in _TAKE_SETTINGS else {}
    for parameter in command.params:
        value = values.get(str(parameter.name))
        is_given = value not in (None, (), []) and "UNSET" not in repr(value)
        if whole and parameter.required and not is_given:
            return f"{parameter.name} is missing"
        if not is_given or not isinstance(value, str) or _PLACEHOLDER.search(value):
            continue
        try:
            if isinstance(parameter.type, click.Choice):
                parameter.type.convert(value, parameter, context)
            elif setting := settings.get(str(parameter.name)):
                setting.parse(value)
        except (click.UsageError, ValueError) as error:
            return f"{parameter.name}: {error}"
    return None


TYPED = [
    (block.place, words)
    for block in blocks()
    if block.language in LANGUAGES
    for words in commands_of(block)
]
NAMED = [
    (page, words_of(found.replace("\\|", "|")))
    for page, text in {**PAGES, "../README.md": _README}.items()
    for found in _INLINE.findall(prose(text))
]


BEGINNINGS: Final = [
    path
    for folder in ("src/forewarned/cli/init/templates", "packaging", "examples")
    for path in sorted((ROOT / folder).rglob("*.toml"))
]
IN_FILES = [
    (path.name, words_of(own or within))
    for path in BEGINNINGS
    for own, within in _IN_A_COMMENT.findall(path.read_text(encoding="utf-8"))
]
IN_MESSAGES = [
    (path.name, words_of(found))
    for path in sorted((ROOT / "src").rglob("*.py"))
    for found in _IN_A_MESSAGE.findall(path.read_text(encoding="utf-8"))
]


def test_there_are_commands_to_check() -> None:
    assert len(TYPED) > 150
    assert len(NAMED) > 250
    assert len(IN_FILES) > 20
    assert len(IN_MESSAGES) > 90


def test_every_command_in_a_block_can_be_typed() -> None:
    wrong = {
        f"{place}: forewarned {' '.join(words)}": why
        for place, words in TYPED
        if (why := mistake(words, whole=True))
    }

    assert wrong == {}


def test_every_command_in_a_sentence_exists_and_has_these_flags() -> None:
    wrong = {
        f"{page}: {' '.join(words)}": why
        for page, words in NAMED
        if (why := mistake(words[1:], whole=False))
    }

    assert wrong == {}


@pytest.mark.parametrize("told", [IN_FILES, IN_MESSAGES], ids=["files", "messages"])
def test_every_command_that_a_file_or_a_message_tells_to_type_can_be_typed(
    told: list[tuple[str, list[str]]],
) -> None:
    wrong = {
        f"{where}: {' '.join(words)}": why
        for where, words in told
        if (why := mistake(words[1:], whole=False))
    }

    assert wrong == {}


@pytest.mark.parametrize(
    "line",
    [
        "forewarned shedule reboot --vm web",
        "forewarned schedule restart --vm web",
        "forewarned schedule reboot --machine web",
        "forewarned schedule reboot",
        "forewarned init agent --for toaster",
        "forewarned serve --rate-limit 5",
        'eval "$(forewarned env azz)"',
    ],
)
def test_a_wrong_command_would_be_noticed(line: str) -> None:
    block = Block("it.md", 1, "sh", "", f"{line}\n")

    [words] = commands_of(block)

    assert mistake(words, whole=True)
