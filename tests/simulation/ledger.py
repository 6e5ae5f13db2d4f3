"""What really happens to the store, in its own order: held to the laws at each commit.

No one tells it: it stands where rows are committed. So what nodes tell each other, their VMs and
their operators can be compared with it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from typing_extensions import override

from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import document
from forewarned.core.transitions import Approved
from forewarned.metadata.http.responses import Persistence, Rendered, render
from forewarned.service.listings import HistoryFilter, HistoryRow
from forewarned.service.ports import Snapshot
from forewarned.service.records import Commit, Saved
from tests.simulation.promises import Promise
from tests.simulation.story import Story, in_words
from tests.stateful import laws_of_commits, laws_of_state
from tests.stateful.documents import SHAPES, Reader
from tests.stateful.laws_of_state import State, stored
from tests.stateful.oracle import Moment, Oracle, Shown

GRACE: Final = timedelta(seconds=5)
_MOST_ROWS: Final = 1_000_000
_LONG_AGO: Final = timedelta(days=10_000)


class CrowdedOracle(Oracle):
    """Of a store that several nodes change: what falls due is seen to a moment later."""

    @override
    def settled_at(self, instant: datetime) -> datetime:
        settled = instant - GRACE
        return settled if settled >= self.up_since else instant - _LONG_AGO


@dataclass(frozen=True, slots=True)
class Raised:
    """All incarnations and revisions were, by so much."""

    by: int


class WorldLedger:
    def __init__(
        self,
        now: datetime,
        story: Story,
        *,
        violated: Callable[[AssertionError], None],
        heard: Callable[[Commit, str], None],
    ) -> None:
        """`violated` is told of a law that was broken, and `heard` of each commit and its node."""
        self.oracle = CrowdedOracle(now)
        self.reader = Reader()
        self.commits = 0
        self.approved_in: dict[EventId, int] = {}
        """Events of one number were approved by one commit."""
        self._learned = 0
        self._log: list[Moment | Raised] = []
        self._told: dict[ScopeId, Saved] = {}
        self._story = story
        self._violated = violated
        self._heard = heard
        self.acknowledged: dict[str, Promise] = {}
        """What clients were told is done, in words."""
        self._rows_seen = 0
        self._last_row: HistoryRow | None = None
        self.silence = timedelta(hours=24)

    # --- what happens ------------------------------------------------------------------------

    def committed(self, commit: Commit, *, decided_at: datetime, node: str) -> None:
        touched = [saved.scope.id for saved in commit.scopes]
        moment = Moment(
            commit=commit,
            heard_at=decided_at,
            before={each: self._told[each] for each in touched if each in self._told},
            shown=dict(_everything_shown(commit.scopes)),
        )
        self._log.append(moment)
        self.commits += 1
        for fact in commit.transitions:
            self._story.tell(node, in_words(fact))
        try:
            self._learn(moment)
            for law in laws_of_commits.LAWS:
                law(self.oracle, moment)
            self.reader.hear(moment, self.oracle)
        except AssertionError as broken:
            self._violated(broken)
        self._heard(commit, node)

    def mark(self) -> int:
        return len(self._log)

    def fell_back(self, mark: int) -> None:
        lost = len(self._log) - mark
        self._story.tell("store", f"a standby takes over that was {lost} commits behind")
        del self._log[mark:]
        before = self.oracle
        self.oracle = CrowdedOracle(before.up_since)
        self.oracle.reads = before.reads
        self._told.clear()
        for entry in self._log:
            if isinstance(entry, Raised):
                self._raise(entry)
            else:
                self._learn(entry)
        self.acknowledged = {
            words: promise for words, promise in self.acknowledged.items() if promise.at <= mark
        }
        self._rows_seen, self._last_row = 0, None

    def raised(self, by: int) -> None:
        self._story.tell("store", f"a new epoch: all incarnations are raised by {by}")
        self._log.append(Raised(by))
        self._raise(Raised(by))
        try:
            for (scope_id, version), shown in _everything_shown(self._told.values()):
                self.reader.read(scope_id, version, shown, self.oracle.shown_in(scope_id))
        except AssertionError as broken:
            self._violated(broken)

    def _learn(self, moment: Moment) -> None:
        self.oracle.learn(moment)
        self._learned += 1
        for fact in moment.commit.transitions:
            if isinstance(fact, Approved):
                self.approved_in[fact.event.id] = self._learned
        self._told.update((saved.scope.id, saved) for saved in moment.commit.scopes)

    def _raise(self, entry: Raised) -> None:
        for scope_id, saved in self._told.items():
            scope = replace(saved.scope, incarnation=saved.scope.incarnation + entry.by)
            raised = replace(saved, scope=scope, revision=saved.revision + entry.by)
            self._told[scope_id] = self.oracle.scopes[scope_id] = raised

    # --- what must be true of the store ------------------------------------------------------

    def state(self, snapshot: Snapshot, now: datetime) -> State:
        held = stored(snapshot, rows=0)
        since = 0 if self._last_row is None else self._last_row.id
        found = snapshot.history_after(since, HistoryFilter(limit=_MOST_ROWS))
        # What concerns no scope is no change of an event: an epoch, a subscription.
        rows = [row for row in found if row.scope_id]
        if self._last_row is not None:
            rows.insert(0, self._last_row)
        return State(
            now=now,
            silence=self.silence,
            scopes=held.scopes,
            records=held.records,
            tasks=held.tasks,
            rows=rows,
            rows_seen=self._rows_seen,
            board={},
        )

    def check(self, state: State) -> None:
        laws_of_state.i14_what_was_told_is_stored(self.oracle, state)
        laws_of_state.i19_every_event_has_its_record(self.oracle, state)
        laws_of_state.i22_each_vm_of_a_started_event_has_a_task(self.oracle, state)
        laws_of_state.i29_history_is_what_was_told(self.oracle, state)
        self._rows_seen = len(self.oracle.facts)
        if state.rows:
            self._last_row = state.rows[-1]


def shown_of(rendered: Rendered) -> Shown:
    response = rendered.document.spliced(b"some date", Persistence.KEEP_ALIVE)
    return Shown(tag=rendered.tag, body=response.partition(b"\r\n\r\n")[2])


def _everything_shown(
    scopes: Iterable[Saved],
) -> Iterator[tuple[tuple[ScopeId, str], Shown]]:
    for saved in scopes:
        shown = document(saved.scope)
        for version in SHAPES:
            yield (saved.scope.id, version), shown_of(render(shown, version))
