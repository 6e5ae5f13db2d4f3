"""CloudEvents, as the CloudEvents project's own package reads them."""

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from forewarned.core.ids import ScopeId
from forewarned.publishing.shapes import cloudevents
from forewarned.service.subscriptions.content import content, samples
from forewarned.service.subscriptions.model import Message
from tests.builders import NOON, an_event
from tests.service.subscriptions.messages import a_message

EVENT = an_event(description='Neustart: "Wartung" für 100 % · 再起動', resources=["web_0"])
MESSAGES = [*samples(), a_message(number=7, event=EVENT, scope_id='avset/Büro 100%"')]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: each.status + str(each.number))
@pytest.mark.parametrize("mode", [cloudevents.structured, cloudevents.binary])
def test_both_modes_are_read_as_the_same_event(mode: object, message: Message) -> None:
    headers, body = mode(message)  # type: ignore[operator]  # one of the two functions

    event = from_http_event(HTTPMessage(headers, body))

    assert event.get_specversion() == "1.0"
    assert event.get_id() == message.id
    assert event.get_type() == f"io.forewarned.event.{message.status.lower()}"
    assert event.get_subject() == message.event.id
    assert event.get_time() == message.at
    assert event.get_extension("sequence") == f"{message.number:020}"
    assert event.get_datacontenttype() == "application/json"
    assert event.get_data() == content(message)


def test_the_source_is_a_uri_reference_that_names_the_scope() -> None:
    message = a_message()._replace(scope_id=ScopeId("avset/Büro 1"))
    headers, body = cloudevents.structured(message)

    event = from_http_event(HTTPMessage(headers, body))

    assert event.get_source() == "/scopes/avset/B%C3%BCro%201"
    # A percent sign is quoted once more in a header, as the HTTP binding says.
    binary, _ = cloudevents.binary(message)
    assert binary["ce-source"] == "/scopes/avset/B%25C3%25BCro%25201"


def test_a_message_looks_the_same_at_every_attempt() -> None:
    message = a_message(at=NOON)

    assert cloudevents.structured(message) == cloudevents.structured(message)
