"""The checkers of the fault tests find what they are for: shown by forged histories."""

import contextlib
import itertools
import socketserver
import threading
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from typing_extensions import override

from tests.cluster.history_checker import check_history, contradictions
from tests.cluster.incarnation_watch import IncarnationWatch, addresses
from tests.cluster.ledger import StoredEvent, check_ledger
from tests.cluster.operations import Kind, Operation, Outcome, Recorder

A: Final = "0A"


def an_operation(
    kind: Kind, outcome: Outcome = Outcome.DONE, *, begun: float = 0, ended: float = 1
) -> Operation:
    return Operation(kind=kind, event_id=A, outcome=outcome, begun_at=begun, ended_at=ended)


SCHEDULED: Final = an_operation(Kind.SCHEDULE, begun=-2, ended=-1)


def a_stored(status: str, *actions: str, cause: str | None = None) -> dict[str, StoredEvent]:
    event = StoredEvent(
        id=A,
        status=status,
        is_approved="approved" in actions,
        start_cause=cause or ("approved" if "started" in actions else None),
        actions=("scheduled", *actions),
    )
    return {A: event}


STARTED: Final = a_stored("Started", "approved", "started")
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
    assert contradictions([], STARTED)
    assert not contradictions([], OPEN)
    assert not contradictions([SCHEDULED], a_stored("Started", "started", cause="not_before"))


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
