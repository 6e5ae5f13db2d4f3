"""Documents of every version and of versions to come; and what is none at all."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.client import EventSource, EventStatus, EventType, ProtocolError
from forewarned.client._wire import read_document, read_instance, read_refusal

AT = datetime(2026, 1, 1, tzinfo=UTC)
FULL: dict[str, Any] = {
    "EventId": "C7061BAC-AFDC-4513-B24B-AA5F13A16123",
    "EventStatus": "Scheduled",
    "EventType": "Freeze",
    "ResourceType": "VirtualMachine",
    "Resources": ["web_0"],
    "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT",
    "Description": "Host server is undergoing maintenance.",
    "EventSource": "Platform",
    "DurationInSeconds": 5,
}


def a_body(*events: object, incarnation: object = 2, **more: object) -> bytes:
    return json.dumps({"DocumentIncarnation": incarnation, "Events": events} | more).encode()


def test_a_document_of_the_newest_version_is_read_whole() -> None:
    document = read_document(a_body(FULL), at=AT)

    [event] = document.events
    assert document.incarnation == 2
    assert event.event_id == FULL["EventId"]
    assert event.type is EventType.FREEZE
    assert event.status is EventStatus.SCHEDULED
    assert event.resources == ("web_0",)
    assert event.not_before == datetime(2022, 4, 11, 22, 26, 58, tzinfo=UTC)
    assert event.description == "Host server is undergoing maintenance."
    assert event.source is EventSource.PLATFORM
    assert event.duration == timedelta(seconds=5)
    assert event.extra == {}


def test_fields_that_an_old_version_lacks_have_their_defaults() -> None:
    old = {k: FULL[k] for k in ("EventId", "EventStatus", "EventType", "Resources", "NotBefore")}

    [event] = read_document(a_body(old), at=AT).events

    assert (event.description, event.source, event.duration) == ("", None, None)
    assert event.resource_type == "VirtualMachine"


def test_an_id_is_all_that_an_event_needs() -> None:
    [event] = read_document(a_body({"EventId": "a"}), at=AT).events

    assert not event.type.is_known
    assert not event.status.is_known
    assert event.resources == ()
    assert event.not_before is None


def test_what_nobody_has_heard_of_is_kept() -> None:
    strange = FULL | {"EventType": "Blackout", "EventSource": "Weather", "Severity": [1]}

    document = read_document(a_body(strange, Region="north"), at=AT)

    [event] = document.events
    assert event.type == "Blackout"
    assert not event.type.is_known
    assert event.source == "Weather"
    assert event.extra == {"Severity": [1]}
    assert document.extra == {"Region": "north"}
    assert hash(event) == hash(read_document(a_body(strange), at=AT).events[0])


def test_a_field_that_cannot_be_read_is_kept_as_it_came() -> None:
    bad = {"NotBefore": "soon", "DurationInSeconds": "long", "Resources": [1], "Description": 5}

    [event] = read_document(a_body(FULL | bad), at=AT).events

    assert (event.not_before, event.duration) == (None, None)
    assert (event.resources, event.description) == ((), "")
    assert event.extra == bad


@pytest.mark.parametrize(
    ("seconds", "span"), [(-1, None), (0, 0), (9, 9), ("30", 30), (1e30, None)]
)
def test_an_unknown_duration_is_none(seconds: object, span: int | None) -> None:
    [event] = read_document(a_body(FULL | {"DurationInSeconds": seconds}), at=AT).events

    assert event.duration == (None if span is None else timedelta(seconds=span))


@pytest.mark.parametrize(("sent", "read"), [(5, 5), ("6", 6), (7.0, 7), (-1, -1)])
def test_incarnations_are_numbers_or_their_text(sent: object, read: int) -> None:
    assert read_document(a_body(incarnation=sent), at=AT).incarnation == read


def test_an_empty_not_before_is_none_and_nothing_more() -> None:
    [event] = read_document(
        a_body(FULL | {"NotBefore": "", "EventStatus": "Started"}), at=AT
    ).events

    assert event.is_started
    assert event.not_before is None
    assert event.extra == {}


@pytest.mark.parametrize("order", [1, -1])
def test_one_id_in_two_letter_cases_is_one_event(order: int) -> None:
    started = FULL | {"EventId": FULL["EventId"].lower(), "EventStatus": "Started"}

    document = read_document(a_body(*[FULL, started][::order]), at=AT)

    [event] = document.events
    assert event.is_started
    assert document.find(FULL["EventId"].title()) == event


def test_names_compare_without_case_and_with_the_first_versions_underscore() -> None:
    [event] = read_document(a_body(FULL | {"Resources": ["_myVM"]}), at=AT).events

    assert event.concerns("MyVm")
    assert not event.concerns("my")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"<html>", b"\xff\xfe", b'{"Events": []}', b"[" * 100_000,
     b'{"DocumentIncarnation": 1}', b'{"DocumentIncarnation": 1, "Events": {}}',
     b'{"DocumentIncarnation": true, "Events": []}', b'{"DocumentIncarnation": 1.5, "Events": []}',
     b'{"DocumentIncarnation": %s, "Events": []}' % (b"9" * 9999),
     a_body({}), a_body("x"), a_body({"EventId": 4}), a_body({"EventId": ""})],
)  # fmt: skip
def test_what_is_no_document_is_refused_whole(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_document(body, at=AT)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(FULL)), JSON))
def test_no_field_can_break_a_document(fields: dict[str, object]) -> None:
    """Only the id decides whether there is an event; nothing that was sent is lost."""
    [event] = read_document(a_body(fields | {"EventId": "a"}), at=AT).events

    assert event.event_id == "a"
    assert set(event.extra) <= set(fields)


def test_an_instance_says_who_it_is() -> None:
    compute = {"name": "web_0", "vmId": "1", "vmScaleSetName": "web", "new": 1, "zone": ""}
    more = {"tagsList": [{"name": "a", "value": "b"}, 1], "osProfile": {"computerName": "web000"}}

    instance = read_instance(json.dumps({"compute": compute | more}).encode())

    assert (instance.name, instance.scale_set, instance.computer_name) == ("web_0", "web", "web000")
    assert instance.tags == {"a": "b"}
    assert instance.extra["new"] == 1


@pytest.mark.parametrize("body", [b"{}", b'{"compute": {}}', b'{"compute": {"name": 1}}', b"x"])
def test_an_instance_without_a_name_is_none(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_instance(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [(b'{"error": "no"}', "no"), (b'{"error": {"message": "no"}}', "no"), (b"", ""),
     (b"<html>\n", "'<html> '"), (b'{"error": 5}', "'{\"error\": 5}'")],
)  # fmt: skip
def test_a_refusal_is_told_in_the_services_words(body: bytes, message: str) -> None:
    assert read_refusal(body) == (message, ())
