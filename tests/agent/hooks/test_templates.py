"""What an event says stays a value, whatever it says (S15)."""

import json
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.agent.hooks.templates import (
    PLACEHOLDERS,
    check_template,
    event_json,
    fill,
    fill_json,
    fill_json_text,
    fill_line,
    fill_url,
    values,
    variables,
)
from tests.agent.hooks.calls import EVENT, a_call, a_sighting

texts = st.text()


def test_a_call_is_told_in_words_that_scripts_can_use() -> None:
    assert values(a_call()) == {
        "event_id": EVENT,
        "type": "Reboot",
        "source": "Platform",
        "me": "web_0",
        "resources": "web_0,web_1",
        "not_before": "2026-01-05T12:15:00Z",
        "duration": "9",
        "description": "Host server is rebooted.",
        "phase": "prepare",
        "time_left": "600",
        "limit": "60",
    }
    assert tuple(values(a_call())) == PLACEHOLDERS


def test_json_is_the_event_as_a_document_shows_it() -> None:
    assert json.loads(event_json(a_call())) == {
        "EventId": EVENT,
        "EventStatus": "Scheduled",
        "EventType": "Reboot",
        "ResourceType": "VirtualMachine",
        "Resources": ["web_0", "web_1"],
        "NotBefore": "Mon, 05 Jan 2026 12:15:00 GMT",
        "Description": "Host server is rebooted.",
        "EventSource": "Platform",
        "DurationInSeconds": 9,
        "Me": "web_0",
        "Phase": "prepare",
        "LimitInSeconds": 60.0,
        "TimeLeftInSeconds": 600.0,
    }


@given(texts)
def test_no_description_breaks_out_of_its_place(description: str) -> None:
    """S15."""
    call = a_call(sighting=a_sighting(description=description))

    assert json.loads(fill_json_text('{"a": "{description}"}', call)) == {"a": description}
    assert fill_json({"a": ["{description}", 1]}, call) == {"a": [description, 1]}
    assert json.loads(event_json(call))["Description"] == description
    assert "\0" not in variables(call)["FOREWARNED_DESCRIPTION"]
    line = fill_line("{description}", call)
    assert not any(ord(char) < 32 or ord(char) == 127 for char in line)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_description_leaves_its_part_of_a_path(description: str) -> None:
    call = a_call(sighting=a_sighting(description=description))

    url = fill_url("http://host/a/{description}/b", call)

    assert url.count("/") == 5
    assert unquote(url) == f"http://host/a/{description}/b"


def test_what_a_value_holds_is_not_filled_again() -> None:
    call = a_call(sighting=a_sighting(description="{event_id}"))

    assert fill("{description} of {type}", call) == "{event_id} of Reboot"


def test_braces_that_are_no_placeholder_stay() -> None:
    check_template('{"a": {"b": 1}} {} {A}')

    assert fill('{"a": {"b": "{me}"}}', a_call()) == '{"a": {"b": "web_0"}}'


def test_a_placeholder_that_means_nothing_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"there is no placeholder \{colour\}: use one of \{event_id\}"
    ):
        check_template("{colour}")
