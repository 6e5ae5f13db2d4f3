"""The tables of targets and shapes, as the settings file and /v1 give them."""

import base64
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from forewarned.config.tables import TableReader
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.tables import (
    AnyShapeTable,
    AnyTargetTable,
    ShapeTable,
    shape_of,
)
from forewarned.service.subscriptions.targets import Apprise, Webhook

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
URL = "https://tickets.example/hook?code=hidden"


class Table(Struct, frozen=True, kw_only=True):
    target: AnyTargetTable
    shape: AnyShapeTable = ShapeName.CLOUDEVENTS


# Any: what TOML or JSON hold.
def read(target: Any, shape: Any = "cloudevents", folder: Path = Path("/etc")) -> Table:
    reader = TableReader(folder)
    table = reader.table({"target": target, "shape": shape}, Table, ())
    if table is None:
        raise ValueError("; ".join(f"{mistake.path} {mistake.why}" for mistake in reader.mistakes))
    return table


def test_a_webhook_needs_nothing_but_its_url() -> None:
    table = read({"kind": "webhook", "url": URL})

    assert table.target.target() == Webhook(url=URL)
    assert shape_of(table.shape) == Shape()
    assert table.target.files == ()


def test_files_are_relative_to_the_file_that_names_them() -> None:
    table = read(
        {"kind": "webhook", "url": URL, "secret_file": "hook.key", "ca_file": "/tls/ca.pem"}
    )

    assert table.target.target() == Webhook(
        url=URL, secret_file="/etc/hook.key", ca_file="/tls/ca.pem"
    )
    assert table.target.files == ("secret_file", "ca_file")


def test_neither_a_url_nor_a_secret_is_shown_in_a_repr() -> None:
    shown = repr(
        [Webhook(url=URL, secrets=(SECRET,)), Apprise(url="slack://token@team/channel")]
    ) + str([Webhook(url=URL).place, Apprise(url="slack://token@team/channel").place])

    assert "https://tickets.example" in shown
    assert "slack://…" in shown
    for secret in ("hidden", SECRET, "token", "/hook"):
        assert secret not in shown


def test_a_shape_is_its_name_or_a_table(tmp_path: Path) -> None:
    (tmp_path / "text.j2").write_text("{{ status }}\n")

    named = read({"kind": "webhook", "url": URL}, "event-grid").shape
    everything = {"kind": "event-grid", "every_scope": True}
    tabled = read({"kind": "webhook", "url": URL}, everything).shape
    from_file = read(
        {"kind": "webhook", "url": URL},
        {"kind": "template", "template_file": "text.j2", "content_type": "text/x-line"},
        tmp_path,
    ).shape

    assert shape_of(named) == Shape(name=ShapeName.EVENT_GRID)
    assert shape_of(tabled) == Shape(name=ShapeName.EVENT_GRID, every_scope=True)
    assert shape_of(from_file) == Shape(
        name=ShapeName.TEMPLATE, template="{{ status }}\n", content_type="text/x-line"
    )


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (
            {"kind": "webhok", "url": URL},
            'expected kind to be webhook or apprise, got "webhok"; did',
        ),
        ({"url": URL}, "expected kind to be webhook or apprise"),
        ({"kind": "webhook"}, "the field 'url' is missing"),
        ({"kind": "webhook", "url": "ftp://x?hidden"}, "url must start with http:// or https://"),
        ({"kind": "webhook", "url": "https://u:hidden@x/"}, "must not have a user or a password"),
        ({"kind": "webhook", "url": "https://x/#hidden"}, "must not have a fragment"),
        ({"kind": "webhook", "url": "https://x/hidden space"}, "printable ASCII characters"),
        ({"kind": "webhook", "url": URL, "secrets": ["hidden"]}, "a secret starts with whsec_"),
        ({"kind": "webhook", "url": URL, "secrets": ["whsec_hidden!"]}, "must be base64"),
        (
            {"kind": "webhook", "url": URL, "secrets": ["whsec_aGk="]},
            "24 to 64 bytes, and this has 2",
        ),
        ({"kind": "webhook", "url": URL, "secrets": [SECRET] * 5}, "at most 4 secrets"),
        (
            {"kind": "webhook", "url": URL, "secrets": [SECRET], "secret_file": "x"},
            "give either secrets or secret_file",
        ),
        ({"kind": "webhook", "url": URL, "ca": "hidden"}, "the certificates are not PEM"),
        ({"kind": "webhook", "url": URL, "secret": SECRET}, "no such field; did you mean secrets"),
        ({"kind": "apprise"}, "give either url or url_file"),
        ({"kind": "apprise", "url": "hidden"}, "one of Apprise's, such as slack://"),
    ],
)
def test_a_mistake_in_a_target_is_named_and_no_secret_is_shown(target: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        read(target)

    assert "hidden" not in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ("cloudevent", 'expected cloudevents, cloudevents-binary, .*, got "cloudevent"; did you'),
        (7, "expected cloudevents, "),
        ({"kind": "template"}, "give either template or template_file"),
        (
            {"kind": "template", "template": "{{ x }}"},
            "template can't be used: line 1: there is no",
        ),
        ({"template": "x"}, 'template is only for kind = "template"'),
        ({"content_type": "x"}, 'content_type is only for kind = "template"'),
        ({"every_scope": True}, 'every_scope is only for kind = "event-grid"'),
        (
            {"kind": "template", "template": "x", "content_type": "a\nb: c"},
            "the content type has characters that a header can't have",
        ),
    ],
)
def test_a_mistake_in_a_shape_is_named(shape: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read({"kind": "webhook", "url": URL}, shape)


def test_a_template_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    table = ShapeTable(kind=ShapeName.TEMPLATE, template_file=tmp_path / "gone.j2")

    with pytest.raises(ValueError, match=r"can't read .*gone.j2: No such file or directory"):
        shape_of(table)


def test_people_are_sent_texts() -> None:
    target = read({"kind": "apprise", "url": "slack://x"}).target

    target.refuse(Shape())
    target.refuse(Shape(name=ShapeName.TEMPLATE, template="x"))
    with pytest.raises(ValueError, match="event-grid is not readable text: omit the shape"):
        target.refuse(Shape(name=ShapeName.EVENT_GRID))
