"""A watch tells every change once, whatever happens to its requests."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.client import (
    Change,
    ChangeKind,
    Ending,
    RefusedError,
    UnavailableError,
    UnsupportedVersionError,
)
from forewarned.client._changes import Knowledge, changes
from forewarned.client._steps import Loss, Request
from forewarned.client._wire import read_document
from tests.client.flows import (
    ID,
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

STARTED = an_event(EventStatus="Started", NotBefore="")
WAITS = {"forewarned-wait": "5m"}


def kinds(found: list[Change]) -> list[str]:
    return [change.kind.value for change in found]


def test_an_events_life_is_told_as_it_was_seen() -> None:
    stage = Stage([a_document(1), a_document(2, an_event()), a_document(3, STARTED), a_document(4)])

    found = list(stage.watch(a_protocol(), options(timeout=3.5)))

    assert kinds(found) == ["appeared", "started", "gone"]
    assert found[-1].ending is Ending.COMPLETED
    assert [change.incarnation for change in found] == [2, 3, 4]


def test_polls_are_a_second_apart_and_conditional() -> None:
    stage = Stage([a_document(1), Say(status=304), Say(status=304, after=0.25), Say(status=304)])

    assert list(stage.watch(a_protocol(), options(timeout=3.5))) == []

    assert [request.headers for request in stage.requests] == [{}] + [{"If-None-Match": '"1"'}] * 3
    assert [pause.seconds for pause in stage.pauses] == pytest.approx([0, 1, 1, 0.75, 0.5])


def test_a_slow_handler_does_not_add_to_the_pause() -> None:
    stage = Stage([a_document(1, an_event()), Say(status=304)])

    for _ in stage.watch(a_protocol(), options(timeout=3)):
        stage.now += 2.5

    assert [pause.seconds for pause in stage.pauses[:2]] == [0, 0]


def test_the_service_is_asked_to_wait_only_where_it_offers_that() -> None:
    held = Say(body=a_body(2, an_event()), headers=WAITS, after=40)
    stage = Stage([a_document(1, **WAITS), held, a_document(3, **WAITS)])

    found = list(itertools.islice(stage.watch(a_protocol(), options()), 2))

    assert [request.target.partition("&")[2] for request in stage.requests] == [
        "",
        "wait=60.000s&last-incarnation=1",
        "wait=60.000s&last-incarnation=2",
    ]
    assert stage.requests[1].timeout == 75
    assert sum(pause.seconds for pause in stage.pauses) == 0
    # Held for 40 s, but not blind for so long: the service would have told.
    assert found[-1].ending is Ending.CANCELED


def test_a_service_that_has_news_again_at_once_is_asked_again_at_once() -> None:
    stage = Stage([a_document(1, **WAITS), a_document(2, an_event(), **WAITS), a_document(3)])

    found = list(itertools.islice(stage.watch(a_protocol(), options(poll=30.0)), 2))

    assert kinds(found) == ["appeared", "gone"]
    assert sum(pause.seconds for pause in stage.pauses) == 0


@pytest.mark.parametrize(("held", "pause"), [(0.5, 29.5), (1.0, 0.0), (5.0, 0.0)])
def test_a_service_that_holds_a_request_for_a_second_or_more_is_asked_again_at_once(
    held: float, pause: float
) -> None:
    unchanged = Say(body=a_body(1), headers=WAITS, after=held)
    stage = Stage([a_document(1, **WAITS), unchanged, a_document(2, an_event())])

    next(stage.watch(a_protocol(), options(poll=30.0)))

    assert stage.pauses[-1].seconds == pause


def test_a_service_is_asked_to_wait_no_longer_than_the_watch_lasts() -> None:
    stage = Stage([a_document(1, **WAITS), Lose(loss=Loss.TIMED_OUT, after=3600)])

    assert list(stage.watch(a_protocol(), options(timeout=5.0))) == []

    assert "wait=5.000s" in stage.requests[-1].target


def test_after_a_failure_the_service_is_not_asked_to_wait() -> None:
    """It may have another document under the number that we know, and would hold that back."""
    stage = Stage([a_document(1, **WAITS), Lose(), a_document(1, an_event(), **WAITS)])

    next(stage.watch(a_protocol(), options()))

    assert ["wait" in request.target for request in stage.requests] == [False, True, False]


def test_a_service_that_offers_to_wait_and_does_not_is_polled() -> None:
    stage = Stage(lambda _: a_document(1, **WAITS))

    assert list(stage.watch(a_protocol(), options(timeout=10))) == []

    assert len(stage.requests) <= 12


def test_a_service_that_refuses_to_wait_after_all_is_polled() -> None:
    def script(request: Request) -> Say:
        return Say(status=400) if "wait" in request.target else a_document(1, **WAITS)

    stage = Stage(script)

    assert list(stage.watch(a_protocol(), options(timeout=5))) == []
    assert sum("wait" in request.target for request in stage.requests) == 1


def test_an_empty_answer_is_no_news() -> None:
    stage = Stage([a_document(2, an_event()), Say(), Say(), a_document(2, an_event())])

    assert kinds(list(stage.watch(a_protocol(), options(timeout=3.5)))) == ["appeared"]


FAULTS: list[Say | Lose] = [
    Lose(),
    Lose(loss=Loss.UNREACHED),
    Lose(loss=Loss.TIMED_OUT, after=15),
    Lose(loss=Loss.OVERSIZED),
    Say(),
    Say(body=b"<html>sign in</html>"),
    Say(body=a_body(9)[:-2]),
    Say(body=b'{"DocumentIncarnation": 9}'),
    Say(status=301, headers={"location": "http://elsewhere"}),
    Say(status=403),
    Say(status=404),
    Say(status=405),
    Say(status=408),
    Say(status=410),
    Say(status=429, headers={"retry-after": "2"}),
    Say(status=500),
    Say(status=503),
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_no_failure_makes_an_event_disappear_or_appear_again(fault: Say | Lose) -> None:
    """I24, seen from the other side."""
    stage = Stage(
        [a_document(2, an_event()), *[fault] * 5, a_document(2, an_event()), a_document(3)]
    )

    found = list(itertools.islice(stage.watch(a_protocol(), options()), 2))

    assert kinds(found) == ["appeared", "gone"]


def test_after_a_failure_the_document_is_asked_for_without_conditions() -> None:
    """A service that was off for a day may have other events under the number that we know."""
    other = an_event("B")
    stage = Stage([a_document(5, an_event()), Lose(), a_document(5, other)])

    found = list(itertools.islice(stage.watch(a_protocol(), options()), 3))

    assert [(c.kind.value, c.event.event_id) for c in found] == [
        ("appeared", ID),
        ("gone", ID),
        ("appeared", "B"),
    ]
    assert stage.requests[-1].headers == {}


def test_an_incarnation_that_fell_is_the_new_truth() -> None:
    stage = Stage([a_document(279, an_event()), a_document(1, STARTED), a_document(2)])

    found = list(itertools.islice(stage.watch(a_protocol(), options()), 3))

    assert kinds(found) == ["appeared", "started", "gone"]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (Say(status=400, body=b'{"error": "header"}'), RefusedError),
        (Say(status=400, body=b'{"error":"v","newest-versions":["1"]}'), UnsupportedVersionError),
    ],
)
def test_what_waiting_cannot_mend_is_raised(said: Say, error: type[Exception]) -> None:
    with pytest.raises(error):
        next(Stage([said]).watch(a_protocol(), options()))


def test_an_endpoint_that_never_worked_and_refuses_is_given_up_after_a_while() -> None:
    stage = Stage(lambda _: Say(status=404))

    with pytest.raises(RefusedError):
        next(stage.watch(a_protocol(), options()))

    assert 1070 <= stage.now < 1085


def test_a_watch_never_gives_up_unless_it_is_told_to() -> None:
    a_day = 24 * 60 * 60
    patient = Stage(lambda _: Lose())
    stage = Stage(lambda _: Lose(loss=Loss.UNREACHED))

    assert list(patient.watch(a_protocol(), options(timeout=a_day))) == []
    assert patient.now == 1000 + a_day
    with pytest.raises(UnavailableError, match=r"scheduled events could not be read for \d+ s"):
        list(stage.watch(a_protocol(), options(patience=60)))
    assert 1060 <= stage.now < 1071


def test_pauses_grow_to_ten_seconds_and_start_anew() -> None:
    def jitter() -> float:
        return 1.0

    stage = Stage([*[Lose()] * 7, a_document(1), Lose(), a_document(2, an_event())])

    next(stage.watch(a_protocol(jitter=jitter), options()))

    troubled = [pause.seconds for pause in stage.pauses if pause.because]
    assert troubled == [0.5, 1, 2, 4, 8, 10, 10, 0.5]
    assert [pause.is_first for pause in stage.pauses if pause.because].count(True) == 2


def test_a_read_that_ran_out_of_time_has_as_long_as_the_first() -> None:
    """After a day's silence the next read switches the service on again."""
    stage = Stage([a_document(1), Say(after=100), Say(body=a_body(2, an_event()), after=100)])

    next(stage.watch(a_protocol(), options()))

    assert [request.timeout for request in stage.requests] == [150, 15, 150]


@pytest.mark.parametrize("timeout", [0.5, 7.25, 100.0])
def test_a_watch_ends_when_its_time_is_up_also_within_a_request(timeout: float) -> None:
    stage = Stage(lambda request: Lose(loss=Loss.TIMED_OUT, after=request.timeout))

    assert list(stage.watch(a_protocol(), options(timeout=timeout))) == []

    assert stage.now == 1000 + timeout


def test_a_watch_ends_when_its_time_is_up_though_the_service_holds_on() -> None:
    stage = Stage([a_document(1, **WAITS), Lose(loss=Loss.TIMED_OUT, after=3600)])

    assert list(stage.watch(a_protocol(), options(timeout=5.0))) == []

    assert stage.now == pytest.approx(1000 + 5 + 1)


def test_a_watch_can_go_on_from_a_document() -> None:
    since = read_document(a_body(2, an_event()), at=NOON)
    stage = Stage([a_document(2, an_event()), a_document(3)])

    [change] = itertools.islice(stage.watch(a_protocol(), options(since=since)), 1)

    assert change.kind is ChangeKind.GONE


def test_only_the_vms_own_events_are_told_if_so_wished() -> None:
    me = Say(body=b'{"compute": {"name": "WEB_0"}}')
    theirs = an_event("B", Resources=["web_1"])
    asked = Stage([Lose(), me, a_document(1, theirs, an_event())])
    given = Stage([a_document(1, theirs, an_event())])

    [first] = itertools.islice(asked.watch(a_protocol(), options(only_mine=True)), 1)
    [second] = itertools.islice(
        given.watch(a_protocol(resource="web_0"), options(only_mine=True)), 1
    )

    assert first.event.event_id == second.event.event_id == ID


def test_the_events_of_other_vms_are_told_unless_it_is_wished_otherwise() -> None:
    stage = Stage([a_document(1, an_event("B", Resources=["web_1"]))])

    found = next(stage.watch(a_protocol(resource="web_0"), options()))

    assert found.event.event_id == "B"


def test_a_watch_asks_who_the_vm_is_for_as_long_as_it_watches() -> None:
    me = Say(body=b'{"compute": {"name": "web_0"}}')
    stage = Stage([*[Lose()] * 9, me, a_document(1, an_event())])

    [found] = itertools.islice(stage.watch(a_protocol(), options(only_mine=True)), 1)

    assert found.event.event_id == ID


def test_an_event_we_approved_and_lost_sight_of_has_an_unknown_end() -> None:
    stage = Stage([a_document(2, an_event()), Say(), a_document(3)])
    protocol = a_protocol()
    watching = stage.watch(protocol, options())

    first = next(watching)
    stage.run(protocol.approve(first.event))
    gone = next(watching)

    assert gone.ending is Ending.UNKNOWN
    assert protocol.approved == set()


def test_an_event_that_changed_after_we_approved_it_is_still_one_that_we_approved() -> None:
    changed = an_event(Description="moved")
    stage = Stage([a_document(2, an_event()), Say(), a_document(3, changed), a_document(4)])
    protocol = a_protocol()
    watching = stage.watch(protocol, options())

    first = next(watching)
    stage.run(protocol.approve(first.event))
    found = list(itertools.islice(watching, 2))

    assert kinds(found) == ["changed", "gone"]
    assert found[-1].ending is Ending.UNKNOWN


def dated(second: int) -> dict[str, str]:
    """What a service says that the time is."""
    return {"date": f"Thu, 01 Jan 2026 12:00:{second:02} GMT"}


@pytest.mark.parametrize("held", [20.0, 40.0])
def test_a_watch_is_not_blind_while_the_service_holds_its_request(held: float) -> None:
    gone = Say(body=a_body(2), headers=WAITS, after=held)
    stage = Stage([a_document(1, an_event(), **WAITS), gone])

    found = list(itertools.islice(stage.watch(a_protocol(), options()), 2))

    assert found[-1].ending is Ending.CANCELED


@pytest.mark.parametrize(
    ("away", "then", "ending"),
    [
        (30.0, Say(body=a_body(2)), Ending.CANCELED),
        (30.5, Say(body=a_body(2)), Ending.UNKNOWN),
        # The request of a watch that was away, held for long.
        (40.0, Say(body=a_body(2), after=40), Ending.UNKNOWN),
        # Their clock stands still, or was set back.
        (40.0, Say(body=a_body(2), headers=dated(0)), Ending.UNKNOWN),
        # Ours stood still with the VM.
        (0.0, Say(body=a_body(2), headers=dated(31)), Ending.UNKNOWN),
    ],
)
def test_a_watch_that_was_away_for_more_than_a_glance_can_say_of_no_event_that_it_was_canceled(
    away: float, then: Say, ending: Ending
) -> None:
    stage = Stage([Say(body=a_body(1, an_event()), headers=WAITS | dated(0)), then])
    watching = stage.watch(a_protocol(), options())

    next(watching)
    stage.now += away

    assert next(watching).ending is ending


def test_a_watch_is_blind_while_a_service_answers_slowly_that_was_not_asked_to_wait() -> None:
    stage = Stage([a_document(1, an_event()), Say(body=a_body(2), after=29.5)])

    found = list(itertools.islice(stage.watch(a_protocol(timeout=100.0), options()), 2))

    assert found[-1].ending is Ending.UNKNOWN


def test_an_event_that_went_while_nobody_could_look_has_an_unknown_end() -> None:
    away = [Lose()] * 9
    stage = Stage([a_document(2, an_event()), *away, a_document(3)])

    found = list(itertools.islice(stage.watch(a_protocol(), options()), 2))

    assert found[-1].ending is Ending.UNKNOWN


def test_no_time_between_polls_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"^the time between polls must be above zero$"):
        options(poll=0.0)


# One history of a service: its documents in order. `None` starts it anew, from incarnation 0.
EVENTS = st.dictionaries(
    st.sampled_from(["A", "B", "C"]),
    st.sampled_from(["Scheduled", "Started"]),
    max_size=3,
)
HISTORIES = st.lists(EVENTS | st.none(), min_size=1, max_size=12)


def _bodies(history: list[dict[str, str] | None]) -> list[bytes]:
    bodies: list[bytes] = [a_body(1)]
    incarnation = 1
    for events in history:
        # A service that forgot its numbers still has its events.
        incarnation = 0 if events is None else incarnation + 1
        if events is not None:
            shown = [an_event(key, EventStatus=status) for key, status in events.items()]
            bodies.append(a_body(incarnation, *shown))
    return bodies


@given(HISTORIES, st.data(), st.booleans())
def test_every_change_is_told_once_through_any_faults(
    history: list[dict[str, str] | None], data: st.DataObject, can_wait: bool
) -> None:
    """What is told, applied in order, is the truth; and it is what was seen, no more, no less."""
    bodies = _bodies(history)
    place = 0
    served: list[bytes] = []

    def script(request: Request) -> Say | Lose:
        nonlocal place
        fault = data.draw(st.none() | st.sampled_from(FAULTS), label="fault")
        if fault is not None:
            return fault
        place = min(len(bodies) - 1, place + data.draw(st.integers(0, 2), label="moves"))
        body = bodies[place]
        tag = f'"{place}"'
        if request.headers.get("If-None-Match") == tag:
            return Say(status=304)
        served.append(body)
        return Say(body=body, headers={"etag": tag} | (WAITS if can_wait else {}), after=0.1)

    state: dict[str, Any] = {}
    found: list[Change] = []
    for change in Stage(script).watch(a_protocol(), options(timeout=15.0, poll=0.5)):
        found.append(change)
        if change.kind is ChangeKind.GONE:
            assert state.pop(change.event.key) == change.event
        else:
            assert (change.event.key in state) == (change.kind is not ChangeKind.APPEARED)
            assert state.get(change.event.key) != change.event
            state[change.event.key] = change.event

    documents = [read_document(body, at=NOON) for body in [a_body(0), *served]]
    seen = [
        (change.kind, change.event)
        for before, after in itertools.pairwise(documents)
        for change in changes(before, after, Knowledge())
    ]
    assert [(change.kind, change.event) for change in found] == seen
    assert state == {event.key: event for event in documents[-1].events}
