"""Write the reference of the agent's file, docs/agent-file.md, from the structs that read the file.

    .venv/bin/python -m tools.agent_reference

A test compares the page with what this would write.
"""

import ast
import inspect
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from forewarned.agent.config.rules import Rule
from forewarned.agent.config.settings import (
    AgentTable,
    DirectoryReadiness,
    ForewarnedReadiness,
    KubernetesReadiness,
)
from forewarned.agent.hooks.kinds import KINDS, HookTable
from forewarned.config.durations import format_duration

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "agent-file.md"
BEGIN: Final = "<!-- reference: written by tools/agent_reference.py -->\n"
END: Final = "<!-- end of reference -->\n"

_HEAD: Final = "| Field | Default | Meaning |\n|---|---|---|\n"


def reference() -> str:
    return "\n".join(_parts())


def described(type_: type[msgspec.Struct]) -> dict[str, str]:
    """What each field means, by its name in the file: the text below it in its class."""
    words: dict[str, str] = {}
    for class_ in reversed(type_.__mro__):
        if issubclass(class_, msgspec.Struct) and class_ is not msgspec.Struct:
            words |= _texts(class_)
    return {each.encode_name: words.get(each.name, "") for each in msgspec.structs.fields(type_)}


def _texts(class_: type) -> dict[str, str]:
    (node,) = ast.parse(inspect.getsource(class_)).body
    assert isinstance(node, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(node.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def page_with(text: str, reference_: str, *, begins: str = BEGIN) -> str:
    before, begin, rest = text.partition(begins)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no place for the reference")
    return f"{before}{begin}\n{reference_}\n{end}{after}"


def _parts() -> Iterator[str]:
    yield "## `[agent]`\n"
    yield table(AgentTable)
    yield "`readiness` is a table with a `kind`.\n"
    for readiness in (DirectoryReadiness, KubernetesReadiness, ForewarnedReadiness):
        yield f'`kind = "{readiness.__struct_config__.tag}"`: {summary(readiness)}\n'
        if msgspec.structs.fields(readiness):
            yield table(readiness)
    yield "## `[[rules]]`\n"
    yield "The first rule that matches applies. An omitted condition matches every event.\n"
    yield table(Rule)
    yield "## `[hooks.NAME]`\n"
    yield "Rules refer to a hook by NAME. Every kind of hook takes these fields:\n"
    yield f"| Field | Default | Meaning |\n|---|---|---|\n| `kind` | required | {_kinds()} |\n" + (
        rows(HookTable)
    )
    for kind, settings in KINDS.items():
        yield f"### `{kind}`\n"
        yield f"{summary(settings)}\n"
        yield table(settings, without=HookTable)


def _kinds() -> str:
    return "The kind of hook: " + ", ".join(f"`{kind}`" for kind in KINDS) + "."


def summary(type_: type[msgspec.Struct]) -> str:
    return (type_.__doc__ or "").partition("\n")[0]


def table(type_: type[msgspec.Struct], *, without: type[msgspec.Struct] | None = None) -> str:
    return _HEAD + rows(type_, without=without)


def rows(type_: type[msgspec.Struct], *, without: type[msgspec.Struct] | None = None) -> str:
    words = described(type_)
    usual = {} if without is None else {f.name: f for f in msgspec.structs.fields(without)}
    # Required ones first: a kind's own come after those that it has in common with others.
    fields = sorted(msgspec.structs.fields(type_), key=lambda each: not each.required)
    return "".join(
        f"| `{each.encode_name}` | {_default(each)} | {_cell(words[each.encode_name])} |\n"
        for each in fields
        # Repeat a common field if this kind has another default.
        if each.name not in usual or usual[each.name].default != each.default
    )


def _default(each: msgspec.structs.FieldInfo) -> str:
    if each.required:
        return "required"
    default = each.default
    if default is msgspec.NODEFAULT:
        default = each.default_factory()
    match default:
        case None | "" | ():
            return "none"
        case {} if not default:
            return "none"
        case msgspec.Struct():
            return "its defaults"
        case bool():
            return f"`{str(default).lower()}`"
        case int():
            return f"`{default}`"
        case timedelta():
            return f'`"{format_duration(default)}"`'
        case tuple() if type(default) is tuple:
            return _cell(f"`{[str(each) for each in default]}`".replace("'", '"'))
        case _:
            return _cell(f"`{_quoted(str(default))}`")


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_with(text, reference()), encoding="utf-8")


if __name__ == "__main__":
    main()
