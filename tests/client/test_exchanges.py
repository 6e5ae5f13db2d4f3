"""Every answer as it came: what a recorder is told, and how often it asks."""

import itertools

import pytest

from forewarned.client import Exchange
from forewarned.client._exchanges import Exchanges
from forewarned.client._steps import Loss
from tests.client.drivers import MakeDriver
from tests.client.flows import Lose, Say, Stage, a_body, a_document, a_protocol, an_event
from tests.client.scripted import RESET, an_answer, answering


def test_every_answer_is_told_as_it_came_good_or_bad(client: MakeDriver) -> None:
    good = an_answer(a_body(2, an_event(Unheard=1)), "200 OK", 'ETag: "2"')
    script = (good, an_answer(b'{"error":"busy"}', "503 Busy"), RESET, an_answer(b"<html>"), good)

    with answering(*script) as service, client(service.address) as scheduled:
        found = list(itertools.islice(scheduled.exchanges(poll=0.01), 5))

    assert [(one.status, one.body, one.loss) for one in found] == [
        (200, a_body(2, an_event(Unheard=1)), ""),
        (503, b'{"error":"busy"}', ""),
        (None, b"", "broken"),
        (200, b"<html>", ""),
        (200, a_body(2, an_event(Unheard=1)), ""),
    ]
    assert found[0].headers["etag"] == '"2"'
    assert found[2].reason


def test_every_read_is_whole_and_unconditional() -> None:
    """A tag that an endpoint forgets to move must not hide a change from a recording."""
    stage = Stage([a_document(1, **{"forewarned-wait": "5m"}), a_document(1)])
    exchanges = Exchanges(a_protocol(), poll=1.0)

    for _ in range(2):
        stage.run(exchanges.next())

    assert [request.headers for request in stage.requests] == [{}, {}]
    assert {request.target.partition("?")[2] for request in stage.requests} == {
        "api-version=2020-07-01"
    }


def test_reads_come_at_the_pace_that_was_asked_for_and_failures_slow_them_down() -> None:
    bad: list[Say | Lose] = [Lose(), Lose(), Lose(), Lose(), Lose(loss=Loss.UNREACHED)]
    later = [Say(status=429, headers={"retry-after": "30"}), a_document(1), a_document(1)]
    slow = Say(body=a_body(1), after=0.4)
    stage = Stage([slow, a_document(1), *bad, *later])
    exchanges = Exchanges(a_protocol(), poll=1.0)

    for _ in range(10):
        stage.run(exchanges.next())

    waited = [pause.seconds for pause in stage.pauses]
    assert waited == pytest.approx([0, 0.6, 1, 1, 1, 1.5, 3, 6, 30, 1])


def test_the_first_read_may_take_minutes_and_so_may_one_after_a_read_that_took_too_long() -> None:
    stage = Stage([a_document(1), Lose(loss=Loss.TIMED_OUT), a_document(1)])
    exchanges = Exchanges(a_protocol(), poll=1.0)

    for _ in range(3):
        stage.run(exchanges.next())

    assert [request.timeout for request in stage.requests] == [150, 15, 150]


def test_closing_ends_them(client: MakeDriver) -> None:
    with answering(an_answer(a_body(1))) as service, client(service.address) as scheduled:
        found: list[Exchange] = []
        for one in scheduled.exchanges(poll=0.01):
            found.append(one)
            scheduled.close()

    assert len(found) == 1


def test_a_pause_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        Exchanges(a_protocol(), poll=0)
