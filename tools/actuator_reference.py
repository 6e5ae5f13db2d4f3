"""Write the reference of `[actuators.NAME]` in docs/actuators.md, from the structs that read them.

    .venv/bin/python -m tools.actuator_reference

A test compares the page with what this would write.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from forewarned.actuators.kinds import KINDS
from forewarned.actuators.slots import Limits
from forewarned.actuators.sources.table import SourceTable
from forewarned.actuators.table import ActionTable, ActuatorTable
from tools.agent_reference import page_with, rows, summary, table

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "actuators.md"
BEGIN: Final = "<!-- reference: written by tools/actuator_reference.py -->\n"


def reference() -> str:
    return "\n".join(_parts())


def page(text: str) -> str:
    return page_with(text, reference(), begins=BEGIN)


def action_of(kind: type[ActuatorTable]) -> type[ActionTable] | None:
    """The table that describes an action of the kind; None where it has none."""
    for each in msgspec.structs.fields(kind):
        for type_ in getattr(each.type, "__args__", ()):
            if isinstance(type_, type) and issubclass(type_, ActionTable):
                return type_
    return None


def _parts() -> Iterator[str]:
    drivers = ", ".join(f"`{kind}`" for kind in KINDS)
    yield "### Fields of every actuator\n"
    yield (
        "| Field | Default | Meaning |\n|---|---|---|\n"
        f"| `driver` | required | What it acts with: {drivers}. |\n" + rows(ActuatorTable)
    )
    yield "`limits` is a table:\n"
    yield table(Limits)
    yield "### Fields of every action\n"
    yield (
        'An action is a table, such as `reboot = { timeout = "5m" }`, with these fields and the'
        " driver's own.\n"
    )
    yield table(ActionTable)
    for name, kind in KINDS.items():
        yield f"### `{name}`\n"
        yield f"{summary(kind)}\n"
        if set(kind.__struct_fields__) - set(ActuatorTable.__struct_fields__):
            yield table(kind, without=ActuatorTable)
        action = action_of(kind)
        if action is not None:
            yield "Each action takes:\n"
            yield table(action, without=ActionTable)
    yield "### Fields of `[[sources]]`\n"
    yield table(SourceTable)


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
