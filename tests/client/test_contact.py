"""What a client knows of how its service was doing when it was asked last."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from forewarned.client._protocol import offered_wait, trouble_of
from forewarned.client._steps import Answer, Loss, Lost, Request
from tests.client.flows import (
    NOON,
    Lose,
    Say,
    Stage,
    a_body,
    a_document,
    a_protocol,
    an_event,
    options,
)

DATE = "Thu, 01 Jan 2026 12:10:00 GMT"


def an_answer(status: int = 200, body: bytes = b"") -> Answer:
    return Answer(
        now=7.0, at=NOON, asked=6.0, status=status, headers={}, body=body, url="http://imds/x"
    )


def test_before_anything_was_read_nothing_is_known_of_the_service() -> None:
    contact = a_protocol().contact(endpoint=None, now=5.0)

    assert (contact.endpoint, contact.at, contact.age, contact.incarnation) == (None,) * 4
    assert (contact.wait, contact.trouble) == (timedelta(0), None)


def test_what_was_read_last_tells_how_the_service_is_doing_by_its_own_clock() -> None:
    protocol = a_protocol()
    stage = Stage(
        [a_document(4, date=DATE, **{"forewarned-wait": "20s"}), Say(status=304), Say(body=b" ")]
    )

    stage.run(protocol.read())
    first = protocol.contact(endpoint="http://imds", now=stage.now + 3)
    stage.now += 10
    stage.run(protocol.read())
    stage.now += 10
    stage.run(protocol.read())
    last = protocol.contact(endpoint="http://imds", now=stage.now)

    assert (first.endpoint, first.incarnation) == ("http://imds", 4)
    assert first.at == NOON + timedelta(minutes=10)
    assert (first.age, first.wait) == (timedelta(seconds=3), timedelta(seconds=20))
    # Unchanged is an answer, and an empty one is none.
    assert (last.at, last.age) == (NOON + timedelta(seconds=10), timedelta(seconds=10))
    assert (last.incarnation, last.wait) == (4, timedelta(0))


def test_the_trouble_of_a_watch_is_told_until_it_is_over() -> None:
    protocol = a_protocol()
    answers: Iterator[Say | Lose] = iter([Lose(), a_document(1, an_event())])
    troubles = []

    def script(_: Request) -> Say | Lose:
        troubles.append(protocol.contact(endpoint=None, now=0.0).trouble)
        return next(answers)

    next(Stage(script).watch(protocol, options()))
    troubles.append(protocol.contact(endpoint=None, now=0.0).trouble)

    assert [trouble and str(trouble) for trouble in troubles] == [None, "lost", None]


@pytest.mark.parametrize(
    ("offer", "seconds"),
    [
        ("5m", 60.0),
        ("60s", 60.0),
        ("59s", 59.0),
        ("1s", 1.0),
        ("0s", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_service_is_asked_to_hold_a_request_for_a_minute_at_most(
    offer: str, seconds: float | None
) -> None:
    assert offered_wait({"forewarned-wait": offer}) == seconds
    assert offered_wait({}) is None


def test_a_read_that_others_interpret_counts_as_one() -> None:
    protocol = a_protocol()

    heard = []
    for body in (b"<html>", a_body(6)):
        protocol.note(an_answer(body=body), None)
        heard.append(protocol.has_read)

    assert heard == [False, True]
    assert protocol.contact(endpoint=None, now=9.0).age == timedelta(seconds=2)
    assert protocol.look().timeout == 15
    protocol.note(an_answer(503), trouble_of(an_answer(503)))
    assert protocol.look().timeout == 15
    late = Lost(now=1.0, at=NOON, loss=Loss.TIMED_OUT, reason="late")
    protocol.note(late, trouble_of(late))
    assert protocol.look().timeout == 150
    protocol.note(an_answer(503), trouble_of(an_answer(503)))
    assert protocol.look().timeout == 150
