"""What single calls send, and what every answer means to them."""

import json
import math

import pytest

from forewarned.client import (
    ProtocolError,
    RefusedError,
    ScheduledEventsError,
    UnavailableError,
    UnsupportedVersionError,
)
from forewarned.client._protocol import trouble_of
from forewarned.client._retries import UPDATING
from forewarned.client._steps import Answer, Loss, Lost, Passed
from tests.client.flows import (
    ID,
    NOON,
    Lose,
    Say,
    Stage,
    a_document,
    a_protocol,
    an_event,
)


def an_answer(status: int = 200, body: bytes = b"", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        now=7.0, at=NOON, asked=6.0, status=status, headers=named, body=body, url="http://imds/x"
    )


def test_a_read_asks_for_the_document_in_the_clients_version() -> None:
    stage = Stage([a_document(3, an_event())])

    document = stage.run(a_protocol(api_version="2019-08-01").read())

    [request] = stage.requests
    assert request.target == "/metadata/scheduledevents?api-version=2019-08-01"
    assert request.headers == {}
    assert document.incarnation == 3


def test_the_first_read_may_take_two_minutes_and_later_ones_may_not() -> None:
    protocol = a_protocol()
    slow = Say(body=a_document(1).body, after=120)
    stage = Stage([slow, slow])

    stage.run(protocol.read())

    with pytest.raises(UnavailableError):
        stage.run(protocol.read())
    assert [request.timeout for request in stage.requests] == [150, 15]


def test_the_first_read_has_as_much_time_when_it_is_sent_again() -> None:
    stage = Stage([Say(status=503), a_document(1)])

    stage.run(a_protocol().read())

    assert [request.timeout for request in stage.requests] == [150, 150]


def test_a_long_poll_says_how_long_and_since_which_document() -> None:
    request = a_protocol().look(wait=7.5, incarnation=3)

    assert request.target == (
        "/metadata/scheduledevents?api-version=2020-07-01&wait=7.500s&last-incarnation=3"
    )
    assert request.timeout == 150 + 7.5


def test_an_approval_is_one_request_for_all_and_needs_no_body_in_answer() -> None:
    stage = Stage([a_document(1, an_event()), Say()])
    protocol = a_protocol()
    [event] = stage.run(protocol.read()).events

    stage.run(protocol.approve(event, "B"))

    request = stage.requests[-1]
    assert request.target == "/metadata/scheduledevents?api-version=2020-07-01"
    assert (dict(request.headers), request.timeout) == ({"Content-Type": "application/json"}, 15)
    assert protocol.approved == {ID.lower(), "b"}
    assert (request.method, request.body) == (
        "POST",
        json.dumps(
            {"StartRequests": [{"EventId": ID}, {"EventId": "B"}]}, separators=(",", ":")
        ).encode(),
    )


@pytest.mark.parametrize("events", [(), ("",), ("A", "")])
def test_an_approval_of_nothing_is_a_mistake_and_sends_nothing(events: tuple[str, ...]) -> None:
    stage = Stage([])

    with pytest.raises(ValueError, match=r"^name at least one event to approve$"):
        stage.run(a_protocol().approve(*events))

    assert stage.requests == []


def test_an_approval_of_a_list_says_how_to_pass_several() -> None:
    told = r"^\['A'\] is neither an event nor an id; to pass several, use \*events$"

    with pytest.raises(TypeError, match=told):
        Stage([]).run(a_protocol().approve(["A"]))  # type: ignore[arg-type]  # what is refused


def test_an_approval_whose_answer_is_lost_may_have_started_the_event() -> None:
    protocol = a_protocol()

    with pytest.raises(UnavailableError):
        Stage(lambda _: Lose()).run(protocol.approve("A"))

    assert protocol.approved == {"a"}


def test_a_lost_approval_is_sent_again() -> None:
    stage = Stage([Lose(), Lose(loss=Loss.UNREACHED), Say()])

    stage.run(a_protocol().approve("A"))

    assert len({request.body for request in stage.requests}) == 1
    assert len(stage.requests) == 3


def test_a_refused_approval_is_told_in_the_services_words() -> None:
    stage = Stage([Say(status=400, body=b'{"error": "event A was not found"}')])

    with pytest.raises(RefusedError, match="event A was not found") as refused:
        stage.run(a_protocol().approve("A"))

    assert (refused.value.status, refused.value.message) == (400, "event A was not found")


def test_a_page_that_swallows_an_approval_has_approved_nothing() -> None:
    """S16: a portal answers 200 to everything."""
    stage = Stage(lambda _: Say(body=b"\n<html>welcome"))

    told = (
        "^http://metadata/metadata/scheduledevents.api-version=2020-07-01: "
        "the response to the approval is a web page, so it is not from a metadata service$"
    )
    with pytest.raises(ProtocolError, match=told):
        stage.run(a_protocol().approve("A"))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (Say(status=400, body=b'{"error": "x"}'), RefusedError),
        (
            Say(status=400, body=b'{"error": "x", "newest-versions": ["1"]}'),
            UnsupportedVersionError,
        ),
        (Say(status=403), RefusedError),
        (Say(status=404, body=b"<html>"), RefusedError),
        (Say(status=405), RefusedError),
        (Lose(loss=Loss.TIMED_OUT), UnavailableError),
    ],
)
def test_what_trying_again_cannot_mend_is_raised_at_once(
    said: Say | Lose, error: type[ScheduledEventsError]
) -> None:
    stage = Stage(lambda _: said)

    with pytest.raises(error):
        stage.run(a_protocol().read())

    assert len(stage.requests) == 1


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (Say(status=500), UnavailableError),
        (Say(status=503, body=b"<html>"), UnavailableError),
        (Say(status=429), UnavailableError),
        (Say(status=302, headers={"location": "http://portal"}), ProtocolError),
        (Say(body=b"<html>"), ProtocolError),
        (Say(body=a_document(1, an_event()).body[:-9]), ProtocolError),
        (Lose(), UnavailableError),
        (Lose(loss=Loss.UNREACHED), UnavailableError),
        (Lose(loss=Loss.OVERSIZED), ProtocolError),
    ],
)
def test_what_may_pass_is_tried_a_few_times(
    said: Say | Lose, error: type[ScheduledEventsError]
) -> None:
    lasting = Stage(lambda _: said)
    passing = Stage([said, said, said, a_document(9)])

    with pytest.raises(error):
        lasting.run(a_protocol().read())

    assert len(lasting.requests) == 4
    assert [pause.seconds for pause in lasting.pauses] == [0.375, 0.75, 1.5]
    assert passing.run(a_protocol().read()).incarnation == 9


def test_a_service_that_updates_itself_has_seventy_seconds() -> None:
    gone = Say(status=410)
    stage = Stage(lambda _: gone)

    with pytest.raises(UnavailableError, match="410"):
        stage.run(a_protocol().read())

    assert UPDATING <= sum(pause.seconds for pause in stage.pauses) < UPDATING + 10


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("٧", 0.375),
        ("Thu, 01 Jan 2026 11:59:00 GMT", 0.375),
        ("Thu, 01 Jan 2026 12:00:20 GMT", 20),
        ("0", 0.375),
        ("9" * 30, 60),
        ("soon", 0.375),
    ],
)
def test_the_service_may_say_when_it_wants_to_be_asked_again(
    retry_after: str, seconds: float
) -> None:
    stage = Stage([Say(status=429, headers={"retry-after": retry_after}), a_document(1)])

    stage.run(a_protocol().read())

    assert [pause.seconds for pause in stage.pauses] == [seconds]


def test_an_empty_answer_is_no_document() -> None:
    protocol = a_protocol()

    told = "^the response is empty, which says nothing about events$"
    with pytest.raises(ProtocolError, match=told):
        Stage([Say()]).run(protocol.read())

    document = Stage([a_document(4, an_event())]).run(protocol.read())
    assert Stage([Say(body=b" ")]).run(protocol.read()) == document


def test_who_the_vm_is_is_asked_once() -> None:
    stage = Stage([Say(body=b'{"compute": {"name": "web_0"}}')])
    protocol = a_protocol()

    assert stage.run(protocol.me()).name == "web_0"
    assert stage.run(protocol.me()).name == "web_0"
    assert [request.target for request in stage.requests] == [
        "/metadata/instance?api-version=2021-12-13"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        Say(status=404),
        Say(status=400, body=b'{"error": "what?", "newest-versions": ["2020-07-01"]}'),
        Say(body=b"<html>no such page</html>"),
        a_document(3),
    ],
)
def test_where_nobody_says_which_vm_this_is_the_error_says_what_was_asked_and_the_way_out(
    answer: Say,
) -> None:
    with pytest.raises((RefusedError, ProtocolError)) as told:
        Stage(lambda _: answer).run(a_protocol().me())

    assert "http://metadata/metadata/instance?api-version=2021-12-13" in str(told.value)
    assert str(told.value).endswith(
        ". If the service can't say which VM this is, set 'resource' to the VM's name"
    )
    assert ".. " not in str(told.value)


@pytest.mark.parametrize(
    ("body", "words"), [(b"", "404"), (b'{"error": "not here."}', "404: not here")]
)
def test_the_way_out_is_a_sentence_after_what_the_service_said(body: bytes, words: str) -> None:
    with pytest.raises(RefusedError) as told:
        Stage(lambda _: Say(status=404, body=body)).run(a_protocol().me())

    assert str(told.value) == (
        f"http://metadata/metadata/instance?api-version=2021-12-13 answered {words}. "
        "If the service can't say which VM this is, set 'resource' to the VM's name"
    )


@pytest.mark.parametrize("answer", [Say(status=503), Say(status=429), Lose()])
def test_a_service_that_is_not_there_at_the_moment_is_no_reason_to_give_a_name(
    answer: Say | Lose,
) -> None:
    with pytest.raises(UnavailableError) as told:
        Stage(lambda _: answer).run(a_protocol().me())

    assert "'resource'" not in str(told.value)


# --- what is wrong, in words ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (
            an_answer(302, location="http://portal/" + "x" * 100),
            ProtocolError,
            f"redirected to 'http://portal/{'x' * 86}'; redirects are never followed",
        ),
        (
            an_answer(300),
            ProtocolError,
            "redirected to 'nowhere'; redirects are never followed",
        ),
        (an_answer(399), ProtocolError, "redirected to 'nowhere'; redirects are never followed"),
        (an_answer(400), RefusedError, "http://imds/x answered 400"),
        (
            an_answer(404, b'{"error": "no such path"}'),
            RefusedError,
            "http://imds/x answered 404: no such path",
        ),
        (
            an_answer(503, b'{"error": "busy"}'),
            UnavailableError,
            "the service responded with 503: busy",
        ),
        *(
            (an_answer(status), UnavailableError, f"the service responded with {status}")
            for status in (408, 410, 425, 429, 500, 599)
        ),
    ],
)
def test_an_answer_that_is_no_document_is_told_in_words_people_can_use(
    answer: Answer, error: type[ScheduledEventsError], words: str
) -> None:
    trouble = trouble_of(answer)

    assert trouble is not None
    assert (type(trouble.error), str(trouble.error)) == (error, words)


def test_a_version_that_the_service_does_not_know_is_told_with_those_it_knows() -> None:
    body = b'{"error": "what?", "newest-versions": ["2020-07-01"]}'

    trouble = trouble_of(an_answer(400, body))

    assert trouble is not None
    assert isinstance(trouble.error, UnsupportedVersionError)
    assert (trouble.error.newest, trouble.error.status) == (("2020-07-01",), 400)
    assert (trouble.error.message, trouble.error.url) == ("what?", "http://imds/x")


@pytest.mark.parametrize("status", [200, 204, 299, 304])
def test_an_answer_that_may_be_read_is_no_trouble(status: int) -> None:
    assert trouble_of(an_answer(status)) is None


@pytest.mark.parametrize("loss", Loss)
def test_a_request_that_is_lost_is_told_as_the_connection_told_it(loss: Loss) -> None:
    trouble = trouble_of(Lost(now=1.0, at=NOON, loss=loss, reason="the line went dead"))

    assert trouble is not None
    assert str(trouble.error) == "the line went dead"


def test_what_is_neither_an_answer_nor_lost_is_a_defect() -> None:
    passed = Passed(now=1.0, at=NOON)

    with pytest.raises(TypeError) as raised:
        trouble_of(passed)

    assert raised.value.args == (passed,)


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2020-07-01", "2019.1", "v_2-x"])
def test_an_api_version_is_letters_digits_dots_dashes_and_underscores(version: str) -> None:
    assert a_protocol(api_version=version).api_version == version


def test_the_first_read_never_has_less_time_than_the_others() -> None:
    assert a_protocol(timeout=15.0, first_timeout=1.0).look().timeout == 15


@pytest.mark.parametrize("version", ["", "2020-07-01&wait=1s", "a b", "-1", "٢٠٢٠"])
def test_what_is_no_api_version_is_a_mistake(version: str) -> None:
    told = f"^'{version}' is not an api-version: write it like 2020-07-01$"

    with pytest.raises(ValueError, match=told):
        a_protocol(api_version=version)


@pytest.mark.parametrize(
    "more",
    [{"timeout": 0.0}, {"first_timeout": 0.0}, {"first_timeout": -1.0}, {"timeout": math.nan}],
)
def test_a_timeout_must_be_some_time(more: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"^a timeout must be above zero$"):
        a_protocol(**more)


def test_half_a_second_is_some_time() -> None:
    assert a_protocol(timeout=0.5, first_timeout=0.5).look().timeout == 0.5
