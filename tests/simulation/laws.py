"""What must hold between nodes, their clients and the store. Each law is named after its invariant.

The laws of single commits and of the stored state are those of `tests.stateful`: these are about
what only several parties can break.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import Document, StartCause
from forewarned.core.tasks import Task, TaskState
from forewarned.core.transitions import Started
from forewarned.metadata.http.responses import Persistence, Rendered, Response
from forewarned.service.board import Board
from forewarned.service.records import Commit
from tests.simulation.ledger import WorldLedger
from tests.simulation.promises import Promise
from tests.stateful.documents import NEWEST
from tests.stateful.laws_of_state import State
from tests.stateful.oracle import Oracle, Shown

LATEST_START: Final = timedelta(seconds=5)
MARKED_WITHIN: Final = timedelta(hours=1)
"""I28: so much of what was read may be forgotten with a node."""
NOTED_AFTER: Final = timedelta(minutes=30)
"""I26: so long a node tells the store of no other read of a scope."""
CLOCKS_DIFFER: Final = timedelta(minutes=10)
"""More than any clock here is wrong by: reads are noted by the nodes' clocks."""
CARRIED_OUT_WITHIN: Final = timedelta(days=1)
"""I22: simulated actuators ask twice a day at least."""
_WAIT_FOR_ACTUATORS: Final = frozenset({TaskState.WAITING, TaskState.CLAIMED, TaskState.BEGUN})
NOTICED_AFTER: Final = 3_000_000_000
"""I24: nanoseconds after which a node has noticed that it is cut off."""
FORGOTTEN_AFTER: Final = 61_000_000_000
"""I24: nanoseconds after which a node may no longer take a VM for one that it has just served."""


def i4_no_clock_starts_an_event_early(
    oracle: Oracle, commit: Commit, *, now: datetime, most: timedelta
) -> None:
    """By the true time. `most` is by how much a node can't tell that the store's clock is ahead."""
    for fact in commit.transitions:
        if isinstance(fact, Started) and fact.cause is StartCause.NOT_BEFORE:
            not_before = oracle.lives[fact.event.id].not_before
            early = timedelta(0) if not_before is None else not_before - now
            assert early <= most, f"I4: {fact.event.id} started {early} early, by a wrong clock"


def i7_no_vm_sees_the_incarnation_fall(seen: dict[str, int], name: str, shown: Shown) -> None:
    """Whichever nodes it reads from, through restarts, failovers and lost commits."""
    incarnation = int(shown.tag)
    last = seen.get(name, 0)
    assert last <= incarnation < 2**31, f"I7: {name} read {incarnation} after {last}"
    seen[name] = incarnation


def i8_i10_what_a_vm_reads_was_committed(
    ledger: WorldLedger, scope_id: ScopeId, version: str, shown: Shown
) -> None:
    """Byte for byte, and whole: never another scope's (I9), never a mixture, never made up."""
    events = shown.body.partition(b',"Events":')[2]
    known = ledger.reader.known(scope_id, version, int(shown.tag))
    assert known is not None, f"I10: {scope_id} never had a document {shown.tag}"
    assert known == events, f"I8: {scope_id} {shown.tag} differs from what others read"


def i9_a_vm_is_taken_for_itself(expected: ScopeId, found: ScopeId, name: str) -> None:
    assert expected == found, f"I9: {name} would read {found}"


def i12_who_approves_is_known(name: str, *, is_missing: bool) -> None:
    assert is_missing, f"I12: {name} approved an event, and the node knows of no such VM"


def i14_what_was_answered_is_durable(oracle: Oracle, promises: Mapping[str, Promise]) -> None:
    """And stays: a failover takes back only what its standby had not received."""
    for words, promise in promises.items():
        assert promise.is_kept(oracle), f"I14, I23: {words}: it was granted, and is lost"


def i15_a_request_is_granted_as_one(
    ledger: WorldLedger, approved: Collection[EventId], *, is_refused: bool
) -> None:
    """All of its events are approved by one commit, or none is. `approved` are those that it has."""
    commits = {ledger.approved_in[each] for each in approved}
    assert not (is_refused and commits), f"I15: a request was refused, and has approved {approved}"
    assert len(commits) <= 1, f"I15: one request has approved {approved} in several commits"


def i20_nothing_is_overdue_for_long(oracle: Oracle, now: datetime) -> None:
    for life in oracle.waiting():
        assert life.not_before is not None
        latest = max(life.not_before, oracle.up_since) + LATEST_START
        assert now <= latest, f"I20: {life.event.id} should have started at {life.not_before}"


def i22_an_action_is_carried_out_once(actions: Counter[str], key: str, *, again: int) -> None:
    """Again only by order of an operator, or where no one can know of the first time."""
    assert actions[key] <= 1 + again, f"I22: {key} was carried out {actions[key]} times"


def i22_what_is_done_was_carried_out(actions: Counter[str], done: Iterable[str]) -> None:
    for key in done:
        assert actions[key] >= 1, f"I22: {key} is done, and nothing was done to the VM"


def i22_what_has_started_is_carried_out(
    oracle: Oracle, tasks: Iterable[Task], now: datetime
) -> None:
    """At least once: where nothing has failed for a day, no task waits for its actuator."""
    for task in tasks:
        life = oracle.lives[task.event_id]
        if task.state in _WAIT_FOR_ACTUATORS and life.facts[-1].at < now - CARRIED_OUT_WITHIN:
            raise AssertionError(f"I22: {task.key} is {task.state} since {life.facts[-1].at}")


def i24_who_was_served_is_still(name: str, shown: Shown | None) -> None:
    """Stale, never empty: a node that is cut off goes on showing its last document."""
    assert shown is not None, f"I24: {name} was served before the store was gone, and is no longer"


def i24_no_newcomer_is_served(name: str, *, is_newcomer: bool) -> None:
    """It may have read a newer document at another node."""
    assert not is_newcomer, f"I24: {name} was never here, and is served by a node that is cut off"


def i24_approvals_are_refused(name: str, response: Response) -> None:
    """I14 too: with 503, and when to try again."""
    head = response.spliced(b"some date", Persistence.KEEP_ALIVE)
    is_refused = response.status == HTTPStatus.SERVICE_UNAVAILABLE and b"Retry-After: " in head
    assert is_refused, f"I24: a node that is cut off answers {name} with {response.status}"


def i25_a_board_that_is_up_to_date_is_the_store(
    board: Board[Rendered], state: State, node: str
) -> None:
    for scope_id, saved in state.scopes.items():
        page = board.page(scope_id)
        assert page is not None, f"I25: {node} has no document of {scope_id}"
        events = tuple(event for event in saved.scope.events.values() if event.announced)
        stored = Document(incarnation=saved.scope.incarnation, events=events)
        assert page.document == stored, f"I25: {node} shows {page.document}, not {stored}"
        assert page.is_active == saved.scope.active, f"I25: {node} has {scope_id} wrong"


def i26_polls_ask_the_store_nothing(board: Board[Rendered], scope_id: ScopeId, name: str) -> None:
    """But for the first of a scope."""
    page = board.page(scope_id)
    is_on = page is not None and page.is_active
    assert not is_on, f"I26: {name} polled, and its node asked the store to switch {scope_id} on"


def i26_reads_are_noted_now_and_then(
    noted: Mapping[ScopeId, datetime], scope_id: ScopeId, now: datetime
) -> None:
    """However often a scope is read at a node. `noted` is when that node last told the store."""
    last = noted.get(scope_id)
    is_soon = last is not None and now - last < NOTED_AFTER - CLOCKS_DIFFER
    assert not is_soon, f"I26: reads of {scope_id} were noted at {last}, and again at {now}"


def i28_scopes_are_on_while_somebody_reads(oracle: Oracle, state: State) -> None:
    for scope_id, reads in oracle.reads.items():
        saved = state.scopes.get(scope_id)
        if saved is None:
            continue
        if state.now - reads.earliest < state.silence - MARKED_WITHIN - CLOCKS_DIFFER:
            assert saved.scope.active, f"I28: {scope_id} was read at {reads.latest}, and is off"
        is_silent = state.now - reads.latest > state.silence + CLOCKS_DIFFER
        if is_silent and state.now - oracle.up_since > CLOCKS_DIFFER:
            assert not saved.scope.active, f"I28: {scope_id} is silent, and on"


def i30_a_hook_runs_once(runs: Mapping[tuple[str, str, str, str], int]) -> None:
    """For each VM, event, phase and step, whatever became of the agent meanwhile."""
    for (vm, event_id, phase, step), times in runs.items():
        assert times <= 1, f"I30: {vm} ran {phase} of {step!r} {times} times for {event_id}"


def i30_only_what_was_changed_is_put_back(
    key: tuple[str, str, str, str], *, was_changed: bool
) -> None:
    assert was_changed, f"I30: {key} ran, and its step had never begun"


def i30_what_was_changed_is_put_back(vm: str, event_id: str, *, is_put_back: bool) -> None:
    """Also where the step has failed: it may have made half of its changes."""
    assert is_put_back, f"I30: {vm} has not put back what it changed for {event_id}, which is over"


def i30_no_approval_after_a_failed_hook(failed: set[tuple[str, str]], vm: str, event: str) -> None:
    assert (vm, event) not in failed, f"I30: {vm} approved {event}, and its hook had failed"


def messages_tell_what_happened(told: object, *, excused: bool) -> None:
    assert excused, f"messages: {told} was told, and never happened"


def messages_come_in_order(told: object, place: int, received: Collection[int]) -> None:
    """Of one scope, as far as they come for the first time."""
    last = max(received, default=-1)
    assert place > last, f"messages: {told} is number {place}, and came after {last}"


def messages_come_at_least_once(missing: Collection[object]) -> None:
    assert not missing, f"messages: neither received nor on their way: {list(missing)[:3]}"


def versions_read() -> tuple[str, ...]:
    """Most VMs read the newest; some were written long ago."""
    return (NEWEST, NEWEST, NEWEST, "2019-08-01", "2017-03-01")


def unknown(event_ids: Iterable[EventId], oracle: Oracle, scope_id: ScopeId) -> list[EventId]:
    """Those that are no event of this scope."""
    lives = oracle.lives
    return [each for each in event_ids if each not in lives or lives[each].scope_id != scope_id]
