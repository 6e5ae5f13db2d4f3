"""The checkers of the fault tests find what they are for: shown by forged histories."""

import contextlib
import itertools
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pytest
from typing_extensions import override

from tests.cluster.history_checker import check_history, contradictions
from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.ledger import StoredEvent, check_ledger
from tests.cluster.operations import Kind, Operation, Outcome, Recorder, Sighting
from tests.cluster.starts import start_of

A: Final = "0A"
B: Final = "0B"
MARK: Final = "traffic/1"
NOT_BEFORE: Final = 30.0


def an_operation(
    kind: Kind, outcome: Outcome = Outcome.DONE, *, begun: float = 0, ended: float = 1
) -> Operation:
    return Operation(kind=kind, event_id=A, outcome=outcome, begun_at=begun, ended_at=ended)


def a_schedule(
    outcome: Outcome = Outcome.DONE, *, event_id: str = A, mark: str = MARK
) -> Operation:
    return Operation(
        kind=Kind.SCHEDULE,
        event_id=event_id if outcome is Outcome.DONE else "",
        outcome=outcome,
        begun_at=-2,
        ended_at=-1,
        mark=mark,
        not_before=NOT_BEFORE,
    )


SCHEDULED: Final = a_schedule()
UNANSWERED: Final = a_schedule(Outcome.UNKNOWN)


def a_stored(
    status: str,
    *actions: str,
    cause: str | None = None,
    event_id: str = A,
    mark: str = MARK,
    started_at: float | None = None,
    read_at: float = 20,
) -> dict[str, StoredEvent]:
    event = StoredEvent(
        id=event_id,
        status=status,
        description=mark,
        is_approved="approved" in actions,
        start_cause=cause or ("approved" if "started" in actions else None),
        not_before=NOT_BEFORE if status == "Scheduled" else None,
        started_at=started_at,
        actions=("scheduled", *actions),
        read_at=read_at,
    )
    return {event_id: event}


def a_sighting(status: str, *, at: float) -> Sighting:
    return Sighting(event_id=A, status=status, asked_at=at, answered_at=at + 0.5)


STARTED: Final = a_stored("Started", "approved", "started")
TIMED: Final = a_stored("Started", "started", cause="not_before")
CANCELED: Final = a_stored("Canceled", "canceled")
OPEN: Final = a_stored("Scheduled")


# --- the ledger -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(Kind))
def test_the_ledger_finds_an_operation_that_was_lost(kind: Kind) -> None:
    """I14, I23."""
    store = {} if kind is Kind.SCHEDULE else OPEN

    with pytest.raises(AssertionError, match=f"1 lost:\n{kind} of 0A"):
        check_ledger([an_operation(kind)], store)


def test_the_ledger_asks_for_nothing_that_was_not_answered_as_done() -> None:
    unknown = [an_operation(kind, Outcome.UNKNOWN) for kind in Kind]

    check_ledger(unknown, {})
    check_ledger([SCHEDULED, an_operation(Kind.APPROVE)], STARTED)
    check_ledger([SCHEDULED, an_operation(Kind.CANCEL)], CANCELED)


# --- the history ----------------------------------------------------------------------------------


def test_the_history_checker_finds_a_lost_approval() -> None:
    with pytest.raises(AssertionError, match="no order explains event 0A"):
        check_history([SCHEDULED, an_operation(Kind.APPROVE)], OPEN)


def test_the_history_checker_finds_a_lost_cancel() -> None:
    """The approval came after the cancel was answered, and both were."""
    cancel = an_operation(Kind.CANCEL)
    approve = an_operation(Kind.APPROVE, begun=2, ended=3)

    assert contradictions([SCHEDULED, cancel, approve], STARTED)


@pytest.mark.parametrize("action", ["approved", "started"])
def test_the_history_checker_finds_what_happened_twice(action: str) -> None:
    """I5, I29."""
    twice = a_stored("Started", "approved", "started", action)

    assert contradictions([SCHEDULED, an_operation(Kind.APPROVE)], twice) == [
        f"event 0A was {action} 2 times: {twice[A].actions}"
    ]


def test_the_history_checker_finds_a_doubled_cancel() -> None:
    """Only one of two can have canceled the event: the other is refused, however they overlap."""
    both = [an_operation(Kind.CANCEL), an_operation(Kind.CANCEL, begun=0.5, ended=2)]
    one = [both[0], an_operation(Kind.CANCEL, Outcome.REFUSED, begun=0.5, ended=2)]

    assert contradictions([SCHEDULED, *both], CANCELED)
    assert not contradictions([SCHEDULED, *one], CANCELED)


def test_the_history_checker_finds_a_start_that_no_one_asked_for() -> None:
    assert contradictions([SCHEDULED], STARTED)
    assert contradictions([SCHEDULED], a_stored("Started", "started", cause="inactive"))
    assert not contradictions([SCHEDULED], TIMED)


def test_the_history_checker_finds_an_approval_that_came_true_before_it_was_asked_for() -> None:
    """A cancel was refused as too late, though the approval was still to come."""
    refused = an_operation(Kind.CANCEL, Outcome.REFUSED)
    approve = an_operation(Kind.APPROVE, begun=2, ended=3)

    assert contradictions([SCHEDULED, refused, approve], STARTED)
    overlapping = an_operation(Kind.APPROVE, begun=0.5, ended=3)
    assert not contradictions([SCHEDULED, refused, overlapping], STARTED)


def test_an_unknown_operation_may_have_happened_or_not_even_later() -> None:
    unknown = an_operation(Kind.APPROVE, Outcome.UNKNOWN)
    refused_later = an_operation(Kind.CANCEL, Outcome.REFUSED, begun=5, ended=6)

    assert not contradictions([SCHEDULED, unknown], OPEN)
    assert not contradictions([SCHEDULED, unknown], STARTED)
    assert not contradictions([SCHEDULED, unknown, refused_later], STARTED)
    assert contradictions([SCHEDULED, unknown, refused_later], OPEN)


def test_repeated_approvals_are_one() -> None:
    """I12."""
    approvals = [an_operation(Kind.APPROVE, begun=n, ended=n + 2) for n in range(8)]

    assert not contradictions([SCHEDULED, *approvals], STARTED)


def test_an_operation_without_an_answer_is_recorded_as_unknown() -> None:
    recorder = Recorder()

    def refused() -> int:
        raise ConnectionRefusedError

    outcomes = [recorder.record(Kind.CANCEL, A, send) for send in (refused, lambda: 503)]
    done = recorder.record(Kind.APPROVE, A, lambda: 200)

    assert outcomes == [Outcome.UNKNOWN, Outcome.UNKNOWN]
    assert done is Outcome.DONE
    assert recorder.done(Kind.APPROVE) == {A}
    assert recorder.done(Kind.CANCEL) == set()


# --- the history: schedules -----------------------------------------------------------------------


@pytest.mark.parametrize("request_", [SCHEDULED, UNANSWERED], ids=["answered", "unanswered"])
def test_the_history_checker_finds_a_request_that_made_two_events(request_: Operation) -> None:
    """I23: none is applied twice."""
    two = OPEN | a_stored("Scheduled", event_id=B)

    found = contradictions([request_], two)

    assert any("made 2 events: 0A, 0B" in line for line in found), found
    assert not contradictions([request_], OPEN)


def test_the_history_checker_finds_a_lost_schedule() -> None:
    """I14, I23. Neither has one that another request made been made by this one."""
    of_another = a_stored("Scheduled", event_id=B, mark="traffic/2")

    for store in ({}, of_another):
        found = contradictions([SCHEDULED, a_schedule(Outcome.UNKNOWN, mark="traffic/2")], store)

        assert any("made 0 events: it is lost" in line for line in found), found


def test_the_history_checker_finds_an_answer_that_names_another_event() -> None:
    assert contradictions([a_schedule(event_id=B)], OPEN)


def test_a_schedule_without_an_answer_made_one_event_or_none() -> None:
    assert not contradictions([UNANSWERED], {})
    assert not contradictions([UNANSWERED], OPEN)
    assert not contradictions([UNANSWERED], TIMED)


def test_the_history_checker_finds_what_a_refused_request_made() -> None:
    assert contradictions([a_schedule(Outcome.REFUSED)], OPEN)
    assert not contradictions([a_schedule(Outcome.REFUSED)], {})


def test_the_history_checker_finds_an_event_that_no_one_asked_for() -> None:
    assert contradictions([], OPEN)[0] == "no one asked for 0A, marked 'traffic/1'"


# --- the history: starts --------------------------------------------------------------------------


def test_the_history_checker_finds_a_lost_start_by_approval() -> None:
    """The approval is durable, and the start that it brings is not."""
    waiting = a_stored("Scheduled", "approved")

    assert contradictions([SCHEDULED, an_operation(Kind.APPROVE)], waiting) == [
        "event 0A is approved, and has not started"
    ]


def test_the_history_checker_finds_a_lost_start_by_time() -> None:
    """I20."""
    overdue = a_stored("Scheduled", read_at=NOT_BEFORE + 5.5)
    soon = a_stored("Scheduled", read_at=NOT_BEFORE + 4.5)

    assert contradictions([SCHEDULED], overdue) == [
        "event 0A has not started, 5.500 s after its NotBefore"
    ]
    assert not contradictions([SCHEDULED], soon)


@pytest.mark.parametrize(
    "store", [{}, OPEN, CANCELED], ids=["no event", "a scheduled one", "a canceled one"]
)
def test_the_history_checker_finds_a_start_that_was_seen_and_lost(
    store: dict[str, StoredEvent],
) -> None:
    """I14, I18. A failover forgot it."""
    asked = [SCHEDULED, an_operation(Kind.APPROVE, Outcome.UNKNOWN)]
    seen = [a_sighting("Started", at=2)]

    found = contradictions(asked, store, seen)

    assert any("no order explains event 0A" in line for line in found), found
    assert not contradictions(asked, STARTED, seen)


def test_the_history_checker_finds_a_start_without_a_record() -> None:
    """I29."""
    assert contradictions([SCHEDULED, an_operation(Kind.APPROVE)], a_stored("Started", "approved"))


def test_the_history_checker_finds_an_event_that_started_again() -> None:
    """I5, I18: it was seen Scheduled between two starts, of which the store has one."""
    asked = [SCHEDULED, an_operation(Kind.APPROVE, Outcome.UNKNOWN)]
    once = [a_sighting("Scheduled", at=2), a_sighting("Started", at=4)]

    found = contradictions(asked, STARTED, [a_sighting("Started", at=1), *once])

    assert any("0A seen Scheduled" in line for line in found), found
    assert not contradictions(asked, STARTED, once)


@pytest.mark.parametrize("schedule", [SCHEDULED, UNANSWERED], ids=["answered", "unanswered"])
def test_the_history_checker_finds_a_start_before_not_before(schedule: Operation) -> None:
    """I1: by what an operator saw, and by the store's own clock."""
    early = a_stored("Started", "started", cause="not_before", started_at=NOT_BEFORE - 1)

    by_sight = contradictions([schedule], TIMED, [a_sighting("Started", at=NOT_BEFORE - 1)])
    by_record = contradictions([schedule], early)

    assert by_sight[0] == "event 0A started (not_before), 0.500 s early"
    assert by_record == ["event 0A started (not_before), 1.000 s early"]
    assert not contradictions([schedule], TIMED, [a_sighting("Started", at=NOT_BEFORE)])


def test_the_history_checker_finds_a_start_before_its_approval_began() -> None:
    """I1."""
    asked = [SCHEDULED, an_operation(Kind.APPROVE, begun=5, ended=6)]
    early = a_stored("Started", "approved", "started", started_at=4)

    by_sight = contradictions(asked, STARTED, [a_sighting("Started", at=3)])
    by_record = contradictions(asked, early)

    assert by_sight[0] == "event 0A started (approved), 1.500 s early"
    assert by_record == ["event 0A started (approved), 1.000 s early"]
    assert not contradictions(asked, STARTED, [a_sighting("Started", at=5)])


def test_the_history_checker_finds_that_a_refused_approval_started_an_event() -> None:
    refused = an_operation(Kind.APPROVE, Outcome.REFUSED)

    found = contradictions([SCHEDULED, refused], STARTED)

    assert found[0] == "event 0A started (approved), and no one asked for that"


@pytest.mark.parametrize("store", [TIMED, CANCELED], ids=["it stays started", "it is canceled"])
def test_the_history_checker_finds_a_cancel_after_a_start_that_was_seen(
    store: dict[str, StoredEvent],
) -> None:
    """I18. Both are confirmed: the start by a look at the event, the cancel by its answer."""
    seen = [a_sighting("Started", at=NOT_BEFORE + 1)]
    cancel = an_operation(Kind.CANCEL, begun=NOT_BEFORE + 2, ended=NOT_BEFORE + 3)
    refused = replace(cancel, outcome=Outcome.REFUSED)

    found = contradictions([SCHEDULED, cancel], store, seen)

    assert any("no order explains event 0A" in line for line in found), found
    assert not contradictions([SCHEDULED, refused], TIMED, seen)


def test_the_history_checker_finds_a_cancel_after_an_approval_that_both_were_confirmed() -> None:
    approve = an_operation(Kind.APPROVE)
    cancel = an_operation(Kind.CANCEL, begun=2, ended=3)

    for store in (STARTED, CANCELED, a_stored("Canceled", "approved", "started", "canceled")):
        assert contradictions([SCHEDULED, approve, cancel], store)


def test_the_history_checker_finds_a_cancel_that_was_refused_before_the_start_by_time() -> None:
    """Nothing but a start can have been in its way, and that came later."""
    refused = an_operation(Kind.CANCEL, Outcome.REFUSED, begun=5, ended=6)
    at_the_instant = replace(refused, begun_at=NOT_BEFORE - 0.5, ended_at=NOT_BEFORE + 0.5)
    still_scheduled = a_sighting("Scheduled", at=NOT_BEFORE + 1)

    assert contradictions([SCHEDULED, refused], TIMED)
    assert not contradictions([SCHEDULED, at_the_instant], TIMED)
    assert contradictions([SCHEDULED, at_the_instant], TIMED, [still_scheduled])


def test_a_start_lies_between_the_last_look_before_it_and_the_first_after() -> None:
    looks = [a_sighting("Scheduled", at=at) for at in (28, 31)]
    looks += [a_sighting("Started", at=at) for at in (32, 33)]

    start = start_of(A, [SCHEDULED], looks, TIMED[A])

    assert start is not None
    assert (start.kind, start.begun_at, start.ended_at) == (Kind.START, 31, 32.5)


def test_an_approval_in_the_instant_of_not_before_is_explained() -> None:
    """F12. The event was due when it was approved, so it started by time."""
    approve = an_operation(Kind.APPROVE, begun=NOT_BEFORE, ended=NOT_BEFORE + 1)
    approved = a_stored("Started", "approved", "started", cause="not_before")

    assert not contradictions([SCHEDULED, approve], approved)
    assert not contradictions([SCHEDULED, approve], TIMED)


# --- the watch ------------------------------------------------------------------------------------


@contextlib.contextmanager
def answering(answer: Callable[[str], bytes]) -> Iterator[str]:
    """A node that answers every poll of an address with that, and closes."""

    class Handler(socketserver.StreamRequestHandler):
        @override
        def handle(self) -> None:
            while self.rfile.readline() not in {b"\r\n", b""}:
                pass
            self.wfile.write(answer(self.client_address[0]))

    class Node(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 500

    with Node(("127.0.0.1", 0), Handler) as node:
        thread = threading.Thread(target=node.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{node.server_address[1]}"
        finally:
            node.shutdown()
            thread.join()


def a_document(incarnation: int, events: str = "[]") -> bytes:
    body = f'{{"DocumentIncarnation":{incarnation},"Events":{events}}}'.encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def test_the_watch_finds_an_incarnation_that_fell_between_two_nodes() -> None:
    """I7. The second node is behind the first, and each VM asks both in turn."""
    with (
        answering(lambda _: a_document(8)) as ahead,
        answering(lambda _: a_document(7)) as behind,
        pytest.raises(
            AssertionError, match=r"vm-\d saw incarnation 8 at node a, and .* 7 at node b"
        ),
        IncarnationWatch(
            {"a": ahead, "b": behind}, addresses(3), interval=0.01, is_roaming=True
        ) as watch,
    ):
        watch.wait_for_rounds(3)


def test_the_watch_finds_two_documents_of_one_incarnation() -> None:
    """I6, I8."""
    answers = itertools.cycle(["[]", "[1]"])
    with (
        answering(lambda _: a_document(7, next(answers))) as node,
        pytest.raises(AssertionError, match="incarnation 7 of vm-0 is two documents"),
        IncarnationWatch({"a": node}, addresses(1), interval=0.01) as watch,
    ):
        watch.wait_for_rounds(2)


def test_a_vm_goes_to_the_next_node_when_its_own_has_gone() -> None:
    with answering(lambda _: a_document(7)) as one, answering(lambda _: a_document(7)) as other:
        nodes = {"a": one, "b": other}
        with IncarnationWatch(nodes, addresses(4), interval=0.01) as watch:
            watch.wait_for_rounds()
            stayed = {vm.name: {seen.node for seen in vm.seen} for vm in watch.vms}
            # No one listens there.
            watch.move("a", "127.0.0.1:1")
            watch.wait_for_rounds()
            watch.wait_for_rounds()

    assert stayed == {"vm-0": {"a"}, "vm-1": {"b"}, "vm-2": {"a"}, "vm-3": {"b"}}
    assert {vm.seen[-1].node for vm in watch.vms} == {"b"}
    assert watch.failures["a"] > 0


def test_a_node_may_refuse_and_answer_again() -> None:
    refusal = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
    answers = itertools.chain([a_document(7), refusal, refusal], itertools.repeat(a_document(9)))
    with (
        answering(lambda _: next(answers)) as node,
        IncarnationWatch({"a": node}, addresses(1), interval=0.01) as watch,
    ):
        while len(watch.vms[0].seen) < 2:
            watch.wait_for_rounds()

    assert watch.refusals == {("a", 503): 2}
    assert [seen.incarnation for seen in watch.vms[0].seen] == [7, 9]
