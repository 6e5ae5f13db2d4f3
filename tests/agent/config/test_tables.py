"""Whatever stands in the agent's file, it is read or refused with its line; never anything else."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from forewarned.agent.config.rules import Rule
from forewarned.agent.config.settings import AgentTable, SettingsError, parse
from forewarned.agent.hooks.kinds import KINDS
from forewarned.agent.model import Phase

FILE = Path("agent.toml")
PROBLEM = re.compile(r"agent\.toml:[1-9][0-9]*: \S.*", re.DOTALL)
# Words that mean something somewhere in the file, and those that don't anywhere.
MEANT = (
    "30s auto off http://127.0.0.1:1 /run/x web/app 22:00-06:00 Reboot Platform when-ready"
    " all-ready drain {type} {no} 127.0.0.1:1 a.service"
)
WORDS = st.sampled_from(MEANT.split()) | st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_characters="\x7f"), max_size=5
)
SCALARS = WORDS | st.integers(-(10**6), 10**6) | st.booleans() | st.floats(allow_nan=False)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "path", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case float():
            return repr(value)
        case str():
            return json.dumps(value)
        case _:
            return json.dumps(value)


def names_of(type_: type[msgspec.Struct]) -> list[str]:
    return [each.encode_name for each in msgspec.structs.fields(type_)]


def tables(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from([*names, "unknown"]), VALUES, max_size=5)


@st.composite
def files(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from([*KINDS, "unknown"]))
    fields = names_of(KINDS[kind]) if kind in KINDS else []
    parts = [
        ("[agent]", draw(tables(names_of(AgentTable)))),
        ("[hooks.drain]", {"kind": kind} | draw(tables(fields))),
        ("[[rules]]", {"name": "any"} | draw(tables(names_of(Rule)))),
    ]
    lines = [
        line
        for header, table in parts
        for line in (header, *(f"{key} = {toml(value)}" for key, value in table.items()))
    ]
    return "\n".join(lines)


def problems(text: str) -> tuple[str, ...]:
    """Also of what can be read: hooks are made and described, which touches nothing."""
    try:
        settings = parse(text, path=FILE)
    except SettingsError as refused:
        return refused.mistakes or ("refused for no reason",)
    for hook in settings.hooks.values():
        hook.describe(Phase.PREPARE)
    return ()


@given(files())
def test_a_file_is_read_or_refused_line_by_line(text: str) -> None:
    tomllib.loads(text)

    assert all(PROBLEM.fullmatch(problem) for problem in problems(text))


@given(st.text(max_size=40))
def test_any_text_at_all_is_read_or_refused(text: str) -> None:
    assert all(PROBLEM.fullmatch(problem) for problem in problems(text))
