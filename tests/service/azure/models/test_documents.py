"""How clients' JSON is looked into and merged."""

from typing import Any

import pytest

from forewarned.service.azure.models.documents import (
    Fields,
    InvalidPropertyError,
    merged,
    merged_resource,
    put_at,
    without,
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
        ({}, {"a": None}, {}),
    ],
)
def test_objects_merge_all_else_replaces_and_null_removes(
    old: dict[str, Any], new: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = repr(old)

    assert merged(old, new) == expected
    assert repr(old) == before


@pytest.mark.parametrize(
    ("sent", "expected"),
    [({}, {"a": "1"}), ({"tags": {"b": "2"}}, {"b": "2"}), ({"tags": None}, {})],
)
def test_tags_are_replaced_together(sent: dict[str, Any], expected: dict[str, str]) -> None:
    assert merged_resource({"tags": {"a": "1"}}, sent)["tags"] == expected


def test_taking_out_and_putting_in_leave_what_others_share_alone() -> None:
    shared = {"b": 1, "c": 2}
    document = {"a": shared}

    assert without(document, "A.b", "x.y") == {"a": {"c": 2}}
    assert without({"a": [shared, 1]}, "a.C") == {"a": [{"b": 1}, 1]}
    put_at(document, "a.b", 5)

    assert document == {"a": {"b": 5, "c": 2}}
    assert shared == {"b": 1, "c": 2}


@pytest.mark.parametrize(
    ("read", "value"),
    [
        ("object", []),
        ("objects", [1]),
        ("text", 1),
        ("text", "a\nb"),
        ("text", "x" * 300),
        ("texts", "a"),
        ("texts", [1]),
        ("flag", "maybe"),
        ("flag", 0),
        ("number", "1"),
        ("number", True),
        ("number", 1.0),
    ],
)
def test_a_wrong_type_is_named_with_its_place(read: str, value: object) -> None:
    fields = Fields({"outer": {"inner": value}}).object("outer")

    with pytest.raises(InvalidPropertyError) as caught:
        getattr(fields, read)("inner")

    assert caught.value.path == "outer.inner"
    assert "'outer.inner'" in str(caught.value)
    assert len(str(caught.value)) < 250


def test_null_is_as_good_as_left_out() -> None:
    for fields in (Fields({}), Fields({"x": None})):
        assert "x" not in fields
        assert list(fields) == []
        assert (fields.text("x"), fields.flag("x"), fields.number("x")) == (None, None, None)
        assert (fields.texts("x"), fields.objects("x"), list(fields.object("x"))) == (None, [], [])
