"""Any sequence of documents, failures and deaths of the agent: each hook once, nothing left undone."""

import asyncio
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarned.agent.hooks.ports import Call
from forewarned.agent.model import Phase, Turn, Verdict
from forewarned.client import ChangeKind, Event, UnavailableError
from tests.agent.machines import Machine
from tests.agent.stubs import StubClient, StubHook, a_document, an_event

IDS = ("A", "B")

deeds = st.tuples(
    st.sampled_from(["appear", "start", "end", "die", "fail"]),
    st.sampled_from(IDS),
    st.integers(0, 12),
)


@dataclass(slots=True)
class World:
    """What the service would say, and the client that says it."""

    visible: dict[str, Event] = field(default_factory=dict)
    past: set[str] = field(default_factory=set)

    def change(self, deed: str, event_id: str) -> ChangeKind | None:
        """What a watch would tell; None if there is nothing to tell."""
        if deed == "appear" and event_id not in self.visible and event_id not in self.past:
            self.visible[event_id] = an_event(event_id)
            return ChangeKind.APPEARED
        if deed == "start" and event_id in self.visible:
            self.visible[event_id] = an_event(event_id, is_started=True)
            return ChangeKind.STARTED
        if deed == "end" and event_id in self.visible:
            self.past.add(event_id)
            return ChangeKind.GONE
        return None

    def client(self) -> StubClient:
        # Twice: a watch that fails begins again with a whole document.
        return StubClient(*[a_document(*self.visible.values())] * 2)


@pytest.mark.anyio
@settings(max_examples=200)
@given(story=st.lists(deeds, max_size=14))
async def test_whatever_happens_each_hook_runs_once_and_what_was_prepared_is_put_back(
    story: list[tuple[str, str, int]],
) -> None:
    """I30."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        machine.hooks = {name: StubHook(does=_works) for name in machine.hooks}
        world = World()
        await _live(machine, world, story)

        assert all(progress.is_finished for progress in machine.progress.values())
        runs = Counter(
            (call.sighting.event_id, call.phase, name)
            for name, hook in machine.hooks.items()
            for call in hook.calls
        )
        assert set(runs.values()) <= {1}
        for progress in machine.progress.values():
            prepared = progress.outcomes[Turn(Phase.PREPARE, "drain")]
            undone = progress.outcomes[Turn(Phase.UNDO, "drain")]
            assert (prepared.verdict is Verdict.SKIPPED) == (undone.verdict is Verdict.SKIPPED)
            assert Turn(Phase.RECOVER, "check") in progress.outcomes


async def _live(machine: Machine, world: World, story: list[tuple[str, str, int]]) -> None:
    rest = list(story)
    while rest:
        client = world.client()
        async with machine.running(client):
            while rest:
                deed, event_id, turns = rest.pop(0)
                if deed == "die":
                    break
                if deed == "fail":
                    # Its news is lost with it, and must be in the document that follows.
                    client.fail(UnavailableError("down"))
                    await _turns(turns)
                    break
                kind = world.change(deed, event_id)
                if kind is not None:
                    client.tell(kind, world.visible[event_id])
                if kind is ChangeKind.GONE:
                    del world.visible[event_id]
                await _turns(turns)
    world.visible.clear()
    async with machine.running(world.client()):
        async with asyncio.timeout(20):
            while not all(p.is_finished for p in machine.progress.values()):  # noqa: ASYNC110
                await asyncio.sleep(0)
        # Nothing more comes of it.
        await _turns(20)


async def _works(_: Call) -> None:
    await _turns(3)


async def _turns(count: int) -> None:
    """Let the agent go on for a while: hooks are in the middle of their work then."""
    for _ in range(count):
        await asyncio.sleep(0)
