"""Write what docs/publishing.md shows of messages, from the code that makes them.

    .venv/bin/python -m tools.publishing_reference

A test compares the page with what this would write.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from forewarned.core.model import Publishing
from forewarned.publishing.shapes import cloudevents, event_grid, short_text
from forewarned.service.subscriptions.content import samples
from forewarned.service.subscriptions.model import Message
from forewarned.service.subscriptions.tables import AppriseTable, ShapeTable, WebhookTable
from forewarned.service.subscriptions.template import TextTemplate
from forewarned.targets.signatures import new_secret, parse_secret, signed
from tools.agent_reference import page_with, summary, table

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "publishing.md"
SHAPES: Final = "<!-- shapes: written by tools/publishing_reference.py -->\n"
FIELDS: Final = "<!-- fields: written by tools/publishing_reference.py -->\n"
RECEIVER: Final = "<!-- receiver: written by tools/publishing_reference.py -->\n"

SECRET: Final = new_secret(b"an example, and not a secret 32b")
AT: Final = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
TEMPLATE: Final = """\
{
  "summary": {{ (event.type ~ " of " ~ vms | join(", ")) | tojson }},
  "state": "{{ status | lower }}",
  "starts": {{ event.not_before | tojson }}
}
"""
_MAINTENANCE: Final = (
    "/subscriptions/6f8d0000-0000-4000-8000-000000000001/resourceGroups/shop"
    "/providers/Microsoft.Compute/availabilitySets/web"
)


def message() -> Message:
    """The first message of the samples that templates are tried with, at a fixed time."""
    first = next(samples())
    event = replace(
        first.event,
        created_at=AT,
        not_before=AT.replace(minute=15),
    )
    return first._replace(
        number=41,
        at=AT,
        event=event,
        resource_id=_MAINTENANCE,
        location="westeurope",
        publishing=Publishing(enabled=True),
    )


def page(text: str) -> str:
    text = page_with(text, "\n".join(_shapes()), begins=SHAPES)
    text = page_with(text, "\n".join(_fields()), begins=FIELDS)
    script = (ROOT / "examples" / "receive.py").read_text(encoding="utf-8")
    return page_with(text, _fence("python", script), begins=RECEIVER)


def _shapes() -> Iterator[str]:
    told = message()
    yield "### `cloudevents`\n"
    yield (
        "CloudEvents 1.0 in structured mode, the default: the attributes and the data are one"
        " JSON object.\n"
    )
    yield _request(*cloudevents.structured(told))
    yield "### `cloudevents-binary`\n"
    yield "The same in binary mode: the attributes are headers, and the body is the data alone.\n"
    yield _request(*cloudevents.binary(told))
    yield "### `event-grid`\n"
    yield (
        "As Azure's Event Grid sends scheduled events to webhooks, with Azure's event type:"
        " receivers written for Azure can read these.\n"
    )
    yield _request(*event_grid.notification(told, subscription="tickets"))
    yield "### `template`\n"
    yield 'A text of your own. This template, with `content_type = "application/json"`,\n'
    yield _fence("jinja", TEMPLATE)
    yield "turns the same message into this:\n"
    headers = {"Content-Type": "application/json"}
    yield _request(headers, TextTemplate(TEMPLATE).render(told).encode())
    yield "### Texts for people\n"
    yield "What goes through Apprise is a title and a few lines, unless there is a template:\n"
    yield _fence("text", f"{short_text.title(told)}\n\n{short_text.body(told)}")


def _fields() -> Iterator[str]:
    for kind in (WebhookTable, AppriseTable):
        yield f'`target` with `kind = "{kind.__struct_config__.tag}"`: {summary(kind)}\n'
        yield table(kind)
    yield "`shape` is one of the names above or, where it has settings, a table:\n"
    yield table(ShapeTable)


def _request(headers: dict[str, str], body: bytes) -> str:
    """As it is sent, but for the line breaks in JSON."""
    marks = signed([parse_secret(SECRET)], message().id, int(AT.timestamp()), body)
    lines = [f"{name}: {value}" for name, value in {**headers, **marks}.items()]
    shown = json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    return _fence("http", "\n".join(["POST /hook HTTP/1.1", *lines, "", shown]))


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
