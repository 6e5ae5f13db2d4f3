"""The agent's journal: an event from first sight to its end, with hooks that are counted (I30)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
from typing_extensions import override

from forewarned.agent.event_loop import EventLoop
from forewarned.agent.event_worker import WorkerContext
from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.journal import KEPT, AnyFact, Finished, Journal, JournalError, Planned
from forewarned.agent.model import Phase, Progress, Turn
from forewarned.agent.model import Verdict as Outcome
from forewarned.agent.status.metrics import Counters
from forewarned.client import ChangeKind
from forewarned.clock import monotonic
from tests.agent.journeys import EVENT, ME, a_plan, a_sighting, a_step
from tests.agent.stubs import StubClient, StubHook, a_document, an_event
from tests.builders import NOON, SECOND
from tools.crash_points.subject import (
    ACKED,
    ASKED,
    STOPPED,
    Life,
    Tell,
    Verdict,
    compare,
    those,
)

FILE: Final = "journal"
STEPS: Final = ("drain", "stop")
RAN: Final = "ran"
APPROVED: Final = "approved"
_EARLIER: Final = "earlier"
"""An event that was over before, and has to be remembered."""
_KEY: Final = EVENT.lower()
_PLAN: Final = a_plan(*(a_step(name, has_undo=True) for name in STEPS), recover=(a_step("check"),))
_PATIENCE: Final = 20.0
_UNTIL_DUE: Final = 500
"""Turns of the event loop until NotBefore: many times as many as hooks take that do nothing."""


class ToldJournal(Journal):
    """Tells what it is asked to keep, and what it has kept."""

    def __init__(self, path: Path, tell: Tell) -> None:
        super().__init__(path)
        self._tell = tell

    @override
    def write(self, fact: AnyFact) -> Progress:
        what = _as_text(msgspec.json.encode(fact))
        self._tell(f"{ASKED} {what}")
        progress = super().write(fact)
        self._tell(f"{ACKED} {what}")
        return progress


class World(StubClient):
    """A service: the event starts when it is approved or due, and is over some time after that."""

    def __init__(self, tell: Tell, *, was_approved: bool) -> None:
        super().__init__(a_document(an_event(is_started=was_approved)))
        self._tell = tell
        self._has_started = was_approved
        if was_approved:
            self.tell(ChangeKind.GONE, an_event(is_started=True))

    @override
    async def approve(self, event_id: str) -> None:
        self._tell(f"{APPROVED} {event_id}")
        self.start()

    def start(self) -> None:
        if not self._has_started:
            self.tell(ChangeKind.STARTED, an_event(is_started=True))
            self.tell(ChangeKind.GONE, an_event(is_started=True))
        self._has_started = True


class JournalSubject:
    name = "journal"
    title = "the agent's journal"

    def __init__(self, make_journal: Callable[[Path, Tell], Journal] = ToldJournal) -> None:
        self._make_journal = make_journal

    def prepare(self, folder: Path) -> None:
        """Something to forget, and a last line that was cut short: the next start rewrites it."""
        with Journal(folder / FILE) as journal:
            _was_over(journal, "long ago", NOON - 2 * KEPT)
            _was_over(journal, _EARLIER, NOON)
        with (folder / FILE).open("ab") as file:
            file.write(b'{"fact":"Gone"')

    def live(self, folder: Path, tell: Tell) -> None:
        try:
            asyncio.run(
                live(self._make_journal(folder / FILE, tell), World(tell, was_approved=False), tell)
            )
        except JournalError as error:
            tell(f"{STOPPED} {error}")

    def attend(self, life: Life) -> list[str]:
        return life.told()

    def judge(self, folder: Path, told: Sequence[str]) -> Verdict:
        verdict = compare(told, _facts(folder / FILE))
        heard = list(told)
        was_approved = bool(those(told, APPROVED))
        journal = self._make_journal(folder / FILE, lambda _: None)
        events = asyncio.run(
            live(journal, World(heard.append, was_approved=was_approved), heard.append)
        )
        runs = Counter(those(heard, RAN))
        return Verdict(
            lost=[*verdict.lost, *([] if _EARLIER in events else [_EARLIER])],
            doubled=[*verdict.doubled, *(f"{run} ran twice" for run in runs if runs[run] > 1)],
            wrong=[
                *verdict.wrong,
                *_wrong(events[_KEY], runs, is_approved=APPROVED in " ".join(heard)),
            ],
        )


def _wrong(progress: Progress, runs: Mapping[str, int], *, is_approved: bool) -> list[str]:
    """What the agent has left undone, or must not have done."""
    found = [] if progress.is_finished else ["the agent has not come to an end"]
    for step in STEPS:
        if runs.get(f"{Phase.PREPARE} {step}") and not runs.get(f"{Phase.UNDO} {step}"):
            undone = progress.outcomes.get(Turn(Phase.UNDO, step))
            # It was on the point of undoing it when it died, and an operator is told.
            if undone is None or undone.verdict is not Outcome.INTERRUPTED:
                found.append(f"{step} was not put back")
    outcomes = [progress.outcomes[Turn(Phase.PREPARE, step)].verdict for step in STEPS]
    if is_approved and set(outcomes) != {Outcome.DONE}:
        found.append(f"approved, and prepared: {outcomes}")
    return found


async def live(journal: Journal, client: World, tell: Tell) -> Mapping[str, Progress]:
    """Run an agent until it is done with the event. Raises JournalError."""
    with journal:
        hooks: dict[str, Hook] = {name: _counted(name, tell) for name in (*STEPS, "check")}
        context = WorkerContext(
            me=ME,
            journal=journal,
            hooks=hooks,
            approve=client.approve,
            now=lambda: NOON,
            monotonic=monotonic,
            counters=Counters(),
        )
        loop = EventLoop(client, context, plan_for=lambda _: _PLAN, poll=SECOND, boot="one")
        running = asyncio.create_task(loop.run())
        try:
            async with asyncio.timeout(_PATIENCE):
                for turn in count():
                    if running.done() or _is_finished(journal):
                        break
                    if turn == _UNTIL_DUE:
                        client.start()
                    await asyncio.sleep(0)
        finally:
            running.cancel()
            [ended] = await asyncio.gather(running, return_exceptions=True)
        if isinstance(ended, ExceptionGroup):
            # As the agent's assembly tells it.
            failures, _ = ended.split(JournalError)
            if failures is not None:
                raise failures.exceptions[0]
        if isinstance(ended, Exception):
            raise ended
        return dict(journal.events)


def _is_finished(journal: Journal) -> bool:
    progress = journal.events.get(_KEY)
    return progress is not None and progress.is_finished


def _counted(name: str, tell: Tell) -> StubHook:
    async def run(call: Call) -> None:
        tell(f"{RAN} {call.phase} {name}")

    return StubHook(does=run)


def _was_over(journal: Journal, event_id: str, at: datetime) -> None:
    journal.write(Planned(event_id=event_id, at=at, sighting=a_sighting(), plan=_PLAN))
    journal.write(Finished(event_id=event_id, at=at))


def _facts(file: Path) -> list[str]:
    """Those of the event, in whole lines."""
    lines = file.read_bytes().split(b"\n")[:-1]
    return [_as_text(line) for line in lines if f'"{_KEY}"'.encode() in line]


def _as_text(fact: bytes) -> str:
    return fact.decode().replace(" ", "_").replace(":", "=")
