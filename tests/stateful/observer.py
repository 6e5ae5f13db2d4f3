"""Stands between the machine and the product: asks, listens, and holds all of it to the laws."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from forewarned.core.errors import RefusalError, UnknownEventError
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import Document
from forewarned.core.rules import Rules
from forewarned.metadata.http.responses import Persistence, Rendered, render
from forewarned.service.board import Board
from forewarned.service.records import Caller, Commit, EventRecord, Saved
from tests.builders import event_id
from tests.stateful import laws_of_commits, laws_of_state
from tests.stateful.documents import NEWEST, SHAPES, Reader
from tests.stateful.fleet import VMS
from tests.stateful.laws_of_state import State, stored
from tests.stateful.oracle import Moment, Oracle, Shown
from tests.stateful.stack import Stack

T = TypeVar("T")
Call = Callable[[], Coroutine[Any, Any, object]]


class Observer:
    def __init__(
        self, stack_type: type[Stack], *, start: datetime, rules: Rules, is_simulated: bool
    ) -> None:
        self._runner = asyncio.Runner()
        self._moments: list[Moment] = []
        self._told: dict[ScopeId, Saved] = {}
        self._learned = 0
        self._rows_seen = 0
        self._reader = Reader()
        self.oracle = Oracle(start)
        self.stack = stack_type(
            start=start,
            rules=rules,
            is_simulated=is_simulated,
            ids=map(event_id, range(1, 10_000)),
            listener=self._hear,
        )
        self.run(self.stack.open())

    def close(self) -> None:
        self.run(self.stack.close())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    # --- asking ------------------------------------------------------------------------------

    def attempt(
        self, work: Coroutine[Any, Any, T], *, is_short: bool = False
    ) -> tuple[T | RefusalError, list[Moment]]:
        """The answer, and the commits that were heard of before it came."""
        first = len(self._moments)
        answer: T | RefusalError
        try:
            answer = self.run(work)
        except RefusalError as refusal:
            answer = refusal
        heard = self._moments[first:]
        if isinstance(answer, RefusalError):
            assert changed_nothing(heard), f"I15: a refusal changed something: {answer!r}"
        elif is_short and isinstance(answer, list):
            self._take_note_of_short_notice(answer)
        self.catch_up()
        return answer, heard

    def expect(
        self,
        work: Coroutine[Any, Any, T],
        refusals: Collection[type[RefusalError]] = (),
        *,
        is_short: bool = False,
    ) -> T | RefusalError:
        """Ask, and get one of these refusals, or none if there are none."""
        answer, _ = self.attempt(work, is_short=is_short)
        if refusals:
            assert isinstance(answer, tuple(refusals)), f"{answer!r} is none of {refusals}"
        else:
            assert not isinstance(answer, RefusalError), f"refused: {answer!r}"
        return answer

    def together(self, calls: Iterable[Call]) -> list[object]:
        """The answers, refusals among them, of calls that were all made before one was answered."""

        async def gathered() -> list[object]:
            return await asyncio.gather(*(call() for call in calls), return_exceptions=True)

        answers = self.run(gathered())
        self.catch_up()
        return answers

    def approve(self, name: str, ids: Sequence[EventId]) -> RefusalError | None:
        """As this VM, any ids at all; what must come of it follows from the oracle."""
        caller = self.caller(name)
        if caller is None:
            return None
        known = [self.oracle.lives.get(i) for i in ids]
        here = [life for life in known if life is not None and life.scope_id == VMS[name].scope]
        was_settled = all(not life.is_waiting or life.approval is not None for life in here)
        approvals = self.stack.use_cases.approvals

        answer, heard = self.attempt(approvals.approve(ids, caller=caller, address="10.0.0.9"))

        if len(here) < len(ids):
            assert isinstance(answer, UnknownEventError), f"I9, I12, I15: {answer!r}"
            return answer
        assert answer is None, f"I12: {answer!r}"
        if was_settled:
            assert changed_nothing(heard), "I12, I13: an approval too many changed something"
        for life in here:
            assert not life.is_waiting or life.approval is not None, "I14: it was answered"
        return None

    def approval(self, name: str, event_id: EventId) -> Call:
        """The same, not yet made."""

        async def approve() -> None:
            caller = self.stack.documents.directory.by_name(name)
            if caller is not None:
                approvals = self.stack.use_cases.approvals
                await approvals.approve((event_id,), caller=caller, address="10.0.0.9")

        return approve

    def poll(self, name: str, *versions: str) -> None:
        caller = self.caller(name)
        if caller is None:
            return
        scope_id = VMS[name].scope
        self.run(self._mark_read(caller))
        self.oracle.read(scope_id, self.stack.now)
        self.catch_up()
        page = self.stack.documents.board.page(caller.scope_id)
        assert page is not None, "I24: no document"
        for version in versions:
            shown = _shown(page.rendered(version))
            self._reader.read(scope_id, version, shown, self.oracle.shown_in(scope_id))

    def caller(self, name: str) -> Caller | None:
        """The VM of this name, if it is there."""
        caller = self.stack.documents.directory.by_name(name)
        if caller is None:
            assert name not in self.oracle.vms(), f"I9: {name} is there, and nobody knows it"
            return None
        assert caller.scope_id == VMS[name].scope, f"I9: {name} would read {caller.scope_id}"
        return caller

    # --- time and ends -----------------------------------------------------------------------

    def step(self, by: timedelta) -> None:
        if by > timedelta(0):
            self.run(self.stack.dial.clock.step(by))
            self.catch_up()

    def crash(self, *, downtime: timedelta) -> None:
        self.run(self.stack.crash(downtime=downtime))
        self.oracle.began_again(self.stack.now, self.stack.rules.silence)
        self._rows_seen = 0
        self.catch_up()

    def stop(self, *, downtime: timedelta) -> None:
        self.run(self.stack.stop(downtime=downtime))
        self.oracle.began_again(self.stack.now, self.stack.rules.silence)
        self._rows_seen = 0
        self.catch_up()

    # --- listening ---------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Hold every commit heard of since the last time to the laws, one after another."""
        while self._learned < len(self._moments):
            moment = self._moments[self._learned]
            self._learned += 1
            self.oracle.learn(moment)
            for law in laws_of_commits.LAWS:
                law(self.oracle, moment)
            self._reader.hear(moment, self.oracle)

    def check_state(self) -> None:
        self.run(self.stack.let_due_timers_run())
        self.catch_up()
        assert not self.stack.failures.messages, self.stack.failures.messages[0]
        state = self.run(self._state())
        for law in laws_of_state.LAWS:
            law(self.oracle, state)
        self._rows_seen = len(self.oracle.facts)

    def check_board_in_any_order(self, chance: Random) -> None:
        """I7, I25: a Board that hears late of a commit goes on showing what it knows better."""
        commits = [moment.commit for moment in self._moments]
        chance.shuffle(commits)
        board, reader = Board(render), Reader()
        for commit in commits:
            board.hear(commit)
            for page in commit.shown:
                shown = _document(board, page.scope_id).incarnation
                reader.i7_incarnation_never_falls(page.scope_id, NEWEST, shown)
        for scope_id in self.oracle.scopes:
            latest = _document(self.stack.documents.board, scope_id)
            assert _document(board, scope_id) == latest, f"I25: {scope_id}"

    def _hear(self, commit: Commit) -> None:
        # An assertion here would end up with whoever asked, or in a timer: only take it down.
        touched = [saved.scope.id for saved in commit.scopes]
        self._moments.append(
            Moment(
                commit=commit,
                heard_at=self.stack.now,
                before={i: self._told[i] for i in touched if i in self._told},
                shown=dict(self._everything_shown(commit)),
            )
        )
        self._told.update((saved.scope.id, saved) for saved in commit.scopes)

    def _everything_shown(self, commit: Commit) -> Iterable[tuple[tuple[ScopeId, str], Shown]]:
        for saved in commit.scopes:
            page = self.stack.documents.board.page(saved.scope.id)
            if page is not None:
                for version in SHAPES:
                    yield (saved.scope.id, version), _shown(page.rendered(version))

    async def _mark_read(self, caller: Caller) -> None:
        """What the metadata listener does at each poll."""
        app = self.stack.use_cases
        page = self.stack.documents.board.page(caller.scope_id)
        assert page is not None, "I24: no document"
        if page.is_active:
            app.activation.seen(caller.scope_id, caller.name)
            await app.activation.finish()
        else:
            await app.activation.activate(caller, address="10.0.0.9")

    async def _state(self) -> State:
        rows = len(self.oracle.facts) - self._rows_seen + 1
        held = await self.stack.store.read(lambda snapshot: stored(snapshot, rows=rows))
        board = self.stack.documents.board
        pages = {scope_id: board.page(scope_id) for scope_id in held.scopes}
        return State(
            now=self.stack.now,
            silence=self.stack.rules.silence,
            scopes=held.scopes,
            records=held.records,
            tasks=held.tasks,
            rows=held.rows,
            rows_seen=self._rows_seen,
            board={
                scope_id: (page.revision, page.document)
                for scope_id, page in pages.items()
                if page is not None
            },
        )

    def _take_note_of_short_notice(self, records: list[Any]) -> None:
        for record in records:
            if isinstance(record, EventRecord):
                self.oracle.short_events.add(record.event.id)
                if record.event.maintenance is not None:
                    self.oracle.short_work.add(record.event.maintenance)


def _document(board: Board[Rendered], scope_id: ScopeId) -> Document:
    page = board.page(scope_id)
    assert page is not None, "I24: no document"
    return page.document


def changed_nothing(moments: Iterable[Moment]) -> bool:
    return all(not moment.commit.scopes and not moment.commit.transitions for moment in moments)


def _shown(rendered: Rendered) -> Shown:
    response = rendered.document.spliced(b"some date", Persistence.KEEP_ALIVE)
    return Shown(tag=rendered.tag, body=response.partition(b"\r\n\r\n")[2])
